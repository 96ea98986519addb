"""Budgets over HTTP: refused with the arithmetic, enforced while running, still there after a restart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from lab import Lab, key, lab, spec

from runtime.engines.fake import ByHand
from runtime.model.states import EXIT_REQUEUE
from runtime_client.errors import NotFound, OverBudget
from runtime_client.models import BudgetScope, SessionFence


@dataclass
class HandClock:
    now_s: float = 1_000_000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def made(tmp_path: Path, clock: HandClock) -> Iterator[Lab]:
    """A server that knows, from three jobs, that those of experiment `lab` run 60 s: 180 device-seconds are spent."""
    with lab(tmp_path, script=ByHand(), n_devices=2, clock=clock) as found:
        for number in (1, 2, 3):
            found.client.submit(spec())
            found.in_state(f"j{number}", "running")
            clock.now_s += 60.0
            found.finish(f"j{number}")
            found.in_state(f"j{number}", "succeeded")
        yield found


def test_a_job_that_the_budget_has_no_room_for_is_refused_with_the_arithmetic(made: Lab) -> None:
    made.client.set_budget(BudgetScope.PROJECT, "default", device_seconds=280)
    made.client.submit(spec())
    words = r"may use 280 device-seconds: 180 spent \+ 60 that its live jobs .* \+ 60 for this one = 300;"
    with pytest.raises(OverBudget, match=words) as refusal:
        made.client.submit(spec())
    assert refusal.value.retryable, "there is room when the other ends sooner"
    with pytest.raises(OverBudget, match="120 for this one = 360") as never:
        made.client.submit(spec(compute={"num_accelerators": 2}))
    assert not never.value.retryable


def test_a_time_limit_alone_is_no_reason_to_refuse(made: Lab) -> None:
    """A job of whose like nothing is known may take a minute of the hours that it is allowed."""
    made.client.set_budget(BudgetScope.PROJECT, "default", device_seconds=200)
    assert made.client.submit(spec(experiment_name="new", timeout_minutes=600)).job_id == "j4"


def test_a_what_if_is_refused_as_the_submission_would_be(made: Lab) -> None:
    made.client.set_budget(BudgetScope.PROJECT, "default", device_seconds=200)
    with pytest.raises(OverBudget, match="60 for this one"):
        made.client.what_if(spec())


def test_in_a_batch_each_job_counts_for_those_after_it(made: Lab) -> None:
    made.client.set_budget(BudgetScope.PROJECT, "default", device_seconds=305)
    answers = made.client.submit_many([spec() for _ in range(3)])
    assert [answer.job is not None for answer in answers] == [True, True, False]


def test_when_it_is_used_up_what_runs_checkpoints_and_ends_and_what_waits_has_ended(
    made: Lab, clock: HandClock
) -> None:
    for _ in range(3):
        made.client.submit(spec(experiment_name="new"))
    made.in_state("j4", "running")
    made.in_state("j5", "running")
    (view,) = made.client.set_budget(BudgetScope.PROJECT, "default", device_seconds=200)
    assert (view.scope, view.name, view.spent, view.n_unknown) == ("project", "default", 180, 3)
    clock.now_s += 10.0
    made.client.set_budget(BudgetScope.SESSION, "another", device_seconds=1)  # anything that makes a round
    assert made.in_state("j6", "cancelled").exit_reason == "over_budget"
    made.in_state("j4", "stopping")
    assert made.client.explain("j4").summary == "j4 ends because a budget is used up"
    made.do(lambda: made.engine.checkpoint(key("j4"), 7))
    made.finish("j4", exit_code=EXIT_REQUEUE)
    ended = made.in_state("j4", "cancelled")
    assert (ended.exit_reason, ended.checkpoint_step) == ("over_budget", 7)
    made.finish("j5", exit_code=0)
    assert made.in_state("j5", "succeeded").exit_reason == "completed"
    with pytest.raises(OverBudget, match="may use 200 device-seconds: 200 spent"):
        made.client.submit(spec())
    made.client.lift_budget(BudgetScope.PROJECT, "default")
    assert [budget.name for budget in made.client.budgets()] == ["another"]
    assert made.client.submit(spec()).job_id == "j7"


def test_a_session_brings_its_budget_with_what_it_submits(made: Lab) -> None:
    fence = SessionFence(session_id="s1", fence=1, device_seconds=90)
    made.client.submit(spec(session=fence))
    with pytest.raises(OverBudget, match="session s1 may use 90 device-seconds"):
        made.client.submit(spec(session=fence))
    (view,) = made.client.budgets()
    assert (view.name, view.device_seconds) == ("s1", 90)


def test_a_session_that_brings_another_budget_has_that_one_and_one_that_brings_none_has_none(made: Lab) -> None:
    for device_seconds, limits in ((90.0, [90.0]), (400.0, [400.0]), (None, []), (500.0, [500.0])):
        made.client.submit(spec(session=SessionFence(session_id="s1", fence=1, device_seconds=device_seconds)))
        assert [view.device_seconds for view in made.client.budgets()] == limits
    with pytest.raises(OverBudget, match="session s1 may use 1 device-second"):
        made.client.submit(spec(session=SessionFence(session_id="s1", fence=1, device_seconds=1)))


def test_what_a_person_set_is_not_changed_by_what_a_session_brings(made: Lab) -> None:
    made.client.set_budget(BudgetScope.SESSION, "s1", device_seconds=70)
    fence = SessionFence(session_id="s1", fence=1, device_seconds=1e6)
    made.client.submit(spec(session=fence))
    with pytest.raises(OverBudget, match="session s1 may use 70 device-seconds"):
        made.client.submit(spec(session=fence))
    made.client.set_budget(BudgetScope.SESSION, "s1", device_seconds=200)
    assert made.client.submit(spec(session=fence)).job_id == "j5"
    assert [view.device_seconds for view in made.client.budgets()] == [200]


def test_lifting_what_is_not_there_says_what_is(made: Lab) -> None:
    made.client.set_budget(BudgetScope.SESSION, "s9", device_seconds=5)
    with pytest.raises(NotFound, match="there is no budget of project vision; budgets there are: session s9"):
        made.client.lift_budget(BudgetScope.PROJECT, "vision")


def test_budgets_and_what_was_spent_outlive_the_server(tmp_path: Path, clock: HandClock) -> None:
    with lab(tmp_path, script=ByHand(), clock=clock) as first:
        first.client.submit(spec())
        first.in_state("j1", "running")
        clock.now_s += 60.0
        first.finish("j1")
        first.in_state("j1", "succeeded")
        first.client.set_budget(BudgetScope.PROJECT, "default", device_seconds=1000)
    with lab(tmp_path, script=ByHand(), clock=clock) as second:
        (after,) = second.client.budgets()
    assert (after.device_seconds, after.spent) == (1000, 60)
