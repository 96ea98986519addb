"""Preempted counted as failed, and other states that lie.

Source: reports about Armada, Kubeflow, W&B, ClearML, Volcano, Kueue, dstack.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from core_language import cluster, running
from lab import Lab, key, lab, spec, until

from nightlab.explanation_page import ASKED
from runtime.engines.fake import ByHand, FakeEngine, Refusal
from runtime.model.outcome import classify_lost, disposition
from runtime.model.states import LEAVING, AttemptOutcome, ExitReason
from runtime.scheduling.policy import Policy
from runtime_client.models import JobView


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Lab]:
    with lab(tmp_path, script=ByHand(), n_devices=1) as found:
        yield found


def preempt(made: Lab, **traits: object) -> None:
    """j1 was asked to leave for j2."""
    made.client.submit(spec(priority_class="exploratory", **traits))
    made.in_state("j1", "running")
    made.client.submit(spec(priority_class="critical"))
    made.in_state("j1", "stopping")


def events_of(made: Lab, job_id: str, event_type: str) -> list[dict[str, object]]:
    found = made.client.events(since=0, wait_s=0.5)
    return [dict(event.data) for event in found if event.job_id == job_id and event.type == event_type]


def after_leaving(made: Lab, **ending: object) -> JobView:
    made.do(lambda: made.engine.finish(key("j1"), **ending))  # type: ignore[arg-type]
    made.in_state("j2", "running")
    return made.client.job("j1")


def test_one_preemption_is_one_ending_and_no_failure(made: Lab) -> None:
    preempt(made, max_retries=1)
    job = after_leaving(made, exit_code=-9, was_killed=True)
    (ending,) = events_of(made, "j1", "attempt_ended")
    assert (ending["outcome"], ending["then"], job.n_retries, job.n_preemptions) == ("preempted", "requeue", 0, 1)


@pytest.mark.parametrize("ending", [{"exit_code": 75}, {"exit_code": 1}, {"exit_code": -15}, {"exit_code": None}])
def test_a_preempted_job_waits_again_however_it_left(made: Lab, ending: dict[str, object]) -> None:
    preempt(made)
    job = after_leaving(made, **ending)
    assert (job.state, job.attempts[0].outcome, job.exit_reason) == ("queued", "preempted", None)


def test_the_record_of_a_preempted_job_is_neither_failed_nor_finished(made: Lab) -> None:
    preempt(made)
    after_leaving(made, exit_code=143)
    assert made.client.run(made.client.job("j1").run_id).status == "SCHEDULED"


def test_a_lost_node_fails_no_job_and_costs_no_retry() -> None:
    state = cluster("a:2", running("j1", on="a:0-1"))
    ending = classify_lost(None, "node a is silent")
    follows = disposition(state.jobs["j1"], ending.outcome, ending.reason, now_s=0.0, policy=Policy())
    assert (ending.outcome, follows.then.value) == (AttemptOutcome.NODE_LOST, "requeue")


def test_devices_that_vanish_with_a_reboot_are_not_the_jobs_failure(tmp_path: Path) -> None:
    engine = FakeEngine(script=ByHand())
    with lab(tmp_path, engine=engine) as before:
        before.client.submit(spec(compute={"num_accelerators": 2}))
        before.in_state("j1", "running")
    engine.nodes = ()
    with lab(tmp_path, engine=engine) as after:
        job = after.client.job("j1")
        assert (job.state, job.n_retries, job.attempts[0].outcome) == ("queued", 0, "node_lost")


def test_leaving_in_order_with_the_work_unfinished_is_no_success(made: Lab) -> None:
    preempt(made, success={"required_metrics": ["loss"]})
    assert after_leaving(made, exit_code=0).state == "queued"


def test_a_job_can_say_that_it_must_not_be_run_again_after_a_preemption(made: Lab) -> None:
    preempt(made)
    job = after_leaving(made, exit_code=93)
    assert (job.state, job.exit_reason, len(job.attempts)) == ("failed", "do_not_requeue", 1)


def test_a_start_that_failed_says_what_failed(made: Lab) -> None:
    made.engine.refusals.append(Refusal(exit_reason=ExitReason.BAD_PYTHON, evidence="/no/python: not found"))
    made.client.submit(spec())
    job = made.in_state("j1", "failed")
    assert (job.exit_reason, job.attempts[0].outcome) == ("bad_python", "launch_failed")
    assert "/no/python" in made.client.explain("j1").summary


def test_a_wait_that_was_too_long_is_no_failure_of_the_command(tmp_path: Path) -> None:
    now_s = [1e9]
    with lab(tmp_path, script=ByHand(), n_devices=1, clock=lambda: now_s[0]) as made:
        made.client.submit(spec())
        made.in_state("j1", "running")
        made.client.submit(spec(queue_timeout_minutes=1))
        now_s[0] += 61
        made.client.submit(spec())
        job = until(lambda: (found := made.client.job("j2")).is_ended and found)
        assert (job.exit_reason, job.attempts) == ("queue_timeout", ())


def test_every_cause_of_leaving_has_words_for_people() -> None:
    assert {cause.value for cause in LEAVING} <= set(ASKED)
