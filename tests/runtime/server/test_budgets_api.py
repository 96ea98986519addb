"""Budgets over HTTP: refused with the arithmetic, enforced while running, still there after a restart."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab, key, lab, spec

from runtime.engines.fake import ByHand
from runtime.model.states import EXIT_REQUEUE
from runtime_client.errors import NotFound, OverBudget
from runtime_client.models import BudgetScope, SessionFence


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Lab]:
    with lab(tmp_path, script=ByHand(), n_devices=2) as found:
        yield found


def test_a_job_that_the_budget_has_no_room_for_is_refused_with_the_arithmetic(made: Lab) -> None:
    made.client.set_budget(BudgetScope.PROJECT, "default", device_seconds=100)
    made.client.submit(spec(timeout_minutes=1, grace_seconds=0))
    with pytest.raises(
        OverBudget, match=r"project default may use 100 device-seconds: .* 60 for this one = 1[12]\d;"
    ) as refusal:
        made.client.submit(spec(timeout_minutes=1, grace_seconds=0))
    assert refusal.value.retryable, "there is room when the other ends sooner"
    with pytest.raises(OverBudget) as never:
        made.client.submit(spec(timeout_minutes=2, grace_seconds=0))
    assert not never.value.retryable
    assert made.client.submit(spec(timeout_minutes=0.5, grace_seconds=0)).job_id == "j2"


def test_a_what_if_is_refused_as_the_submission_would_be(made: Lab) -> None:
    made.client.set_budget(BudgetScope.PROJECT, "default", device_seconds=10)
    with pytest.raises(OverBudget, match="60 for this one"):
        made.client.what_if(spec(timeout_minutes=1, grace_seconds=0))


def test_in_a_batch_each_job_counts_for_those_after_it(made: Lab) -> None:
    made.client.set_budget(BudgetScope.PROJECT, "default", device_seconds=125)
    answers = made.client.submit_many([spec(timeout_minutes=1, grace_seconds=0) for _ in range(3)])
    assert [answer.job is not None for answer in answers] == [True, True, False]


def test_when_it_is_used_up_what_runs_checkpoints_and_ends_and_what_waits_has_ended(made: Lab) -> None:
    for _ in range(3):
        made.client.submit(spec())
    made.in_state("j1", "running")
    made.in_state("j2", "running")
    (view,) = made.client.set_budget(BudgetScope.PROJECT, "default", device_seconds=1e-3)
    assert (view.scope, view.name, view.is_used_up) == ("project", "default", True)
    waited = made.in_state("j3", "cancelled")
    assert waited.exit_reason == "over_budget"
    made.in_state("j1", "stopping")
    assert made.client.explain("j1").summary == "j1 ends because a budget is used up"
    made.do(lambda: made.engine.checkpoint(key("j1"), 7))
    made.finish("j1", exit_code=EXIT_REQUEUE)
    ended = made.in_state("j1", "cancelled")
    assert (ended.exit_reason, ended.checkpoint_step) == ("over_budget", 7)
    made.finish("j2", exit_code=0)
    assert made.in_state("j2", "succeeded").exit_reason == "completed"
    with pytest.raises(OverBudget, match=r"may use 0\.001 device-seconds"):
        made.client.submit(spec())
    made.client.lift_budget(BudgetScope.PROJECT, "default")
    assert made.client.budgets() == []
    assert made.client.submit(spec()).job_id == "j4"


def test_a_session_brings_its_budget_with_what_it_submits(made: Lab) -> None:
    fence = SessionFence(session_id="s1", fence=1, device_seconds=90)
    made.client.submit(spec(session=fence, timeout_minutes=1, grace_seconds=0))
    with pytest.raises(OverBudget, match="session s1 may use 90 device-seconds"):
        made.client.submit(spec(session=fence, timeout_minutes=1, grace_seconds=0))
    more = SessionFence(session_id="s1", fence=1, device_seconds=200)
    assert made.client.submit(spec(session=more, timeout_minutes=1, grace_seconds=0)).job_id == "j2"
    (view,) = made.client.budgets()
    assert (view.name, view.device_seconds) == ("s1", 200)


def test_lifting_what_is_not_there_says_what_is(made: Lab) -> None:
    made.client.set_budget(BudgetScope.SESSION, "s9", device_seconds=5)
    with pytest.raises(NotFound, match="there is no budget of project vision; budgets there are: session s9"):
        made.client.lift_budget(BudgetScope.PROJECT, "vision")


def test_budgets_and_what_was_spent_outlive_the_server(tmp_path: Path) -> None:
    with lab(tmp_path, script=ByHand(), n_devices=2) as first:
        first.client.submit(spec())
        first.in_state("j1", "running")
        first.finish("j1", exit_code=0)
        first.in_state("j1", "succeeded")
        (before,) = first.client.set_budget(BudgetScope.PROJECT, "default", device_seconds=1000)
    with lab(tmp_path, script=ByHand(), n_devices=2) as second:
        (after,) = second.client.budgets()
    assert (after.device_seconds, after.spent) == (1000, before.spent)
    assert after.spent > 0
