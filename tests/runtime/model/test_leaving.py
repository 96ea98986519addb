"""A grace learned from how long attempts took to leave."""

from __future__ import annotations

import pytest
from core_language import Step, cluster, queued, round_of, running, starting, then

from runtime.model.codec import decode_state, encode_state
from runtime.model.events import AttemptEnded, AttemptStarted, StartOrdered, StopOrdered, Then
from runtime.model.leaving import GRACE_MAX_S, grace_of
from runtime.model.nouns import Placement
from runtime.model.state import State
from runtime.model.states import AttemptOutcome, ExitReason, StopCause
from runtime.scheduling.decision import Preempt


def asked(job_id: str, *, at_s: float, cause: StopCause = StopCause.PREEMPT, grace_s: float = 30.0) -> Step:
    order = StopOrdered(job_id=job_id, attempt=1, cause=cause, reason="test", beneficiary=None, grace_s=grace_s)
    return lambda journal: journal.record(order, at_s)


def left(job_id: str, *, at_s: float, exit_code: int | None = 75) -> Step:
    ended = AttemptEnded(
        job_id=job_id,
        attempt=1,
        outcome=AttemptOutcome.PREEMPTED,
        exit_reason=ExitReason.PREEMPTED,
        exit_code=exit_code,
        evidence=None,
        then=Then.REQUEUE,
        end_state=None,
    )
    return lambda journal: journal.record(ended, at_s)


def again(job_id: str, *, at_s: float) -> Step:
    def step(journal: object) -> None:
        place = Placement(node_id="a", devices=(0,), first_rank=0)
        journal.record(StartOrdered(job_id=job_id, attempt=2, placements=(place,), reason="test"), at_s)  # type: ignore[attr-defined]
        journal.record(AttemptStarted(job_id=job_id, attempt=2, pid=1), at_s)  # type: ignore[attr-defined]

    return step


def after(
    took_s: float, *, exit_code: int | None = 75, cause: StopCause = StopCause.PREEMPT, asks_s: float = 30.0
) -> State:
    """A job that left once and runs again."""
    first = (running("j1", on="a:0", grace_s=asks_s), asked("j1", at_s=10.0, cause=cause, grace_s=asks_s))
    return cluster("a:1", *first, left("j1", at_s=10.0 + took_s, exit_code=exit_code), again("j1", at_s=100.0))


@pytest.mark.parametrize(
    ("took_s", "grace_s"), [(2.0, 30.0), (20.0, 30.0), (40.0, 60.0), (100.0, 150.0), (1000.0, GRACE_MAX_S)]
)
def test_the_grace_covers_what_leaving_took_and_is_never_less_than_was_asked_for(took_s: float, grace_s: float) -> None:
    assert grace_of(after(took_s).jobs["j1"]) == grace_s


def test_who_was_killed_for_want_of_time_gets_twice_as_much() -> None:
    assert grace_of(after(30.0, exit_code=-9).jobs["j1"]) == 60.0
    assert grace_of(after(31.0, exit_code=137).jobs["j1"]) == 60.0


def test_who_was_killed_before_its_time_tells_nothing() -> None:
    assert grace_of(after(5.0, exit_code=-9).jobs["j1"]) == 30.0


@pytest.mark.parametrize("exit_code", [1, None])
def test_who_failed_on_its_way_out_tells_nothing(exit_code: int | None) -> None:
    assert grace_of(after(200.0, exit_code=exit_code).jobs["j1"]) == 30.0


def test_only_a_notice_to_leave_tells() -> None:
    assert grace_of(after(200.0, cause=StopCause.CANCEL).jobs["j1"]) == 30.0


def test_a_job_that_asks_for_no_grace_gets_none() -> None:
    assert grace_of(after(200.0, asks_s=0.0).jobs["j1"]) == 0.0


def test_a_job_that_asks_for_more_than_is_learned_gets_it() -> None:
    assert grace_of(after(2.0, asks_s=900.0).jobs["j1"]) == 900.0


def test_other_jobs_of_the_experiment_profit_and_those_of_others_do_not() -> None:
    state = cluster("a:3", running("j1", on="a:0"), asked("j1", at_s=10.0), left("j1", at_s=110.0))
    state = then(state, starting("j2", on="a:1"), starting("j3", on="a:2", experiment="other"))
    assert [grace_of(state.jobs[job_id]) for job_id in ("j2", "j3")] == [150.0, 30.0]


def test_a_preemption_gives_the_learned_grace() -> None:
    state = then(after(100.0), queued("j2", priority="critical"))
    (action,) = round_of(state, now_s=1000.0).actions
    assert isinstance(action, Preempt)
    assert action.grace_s == 150.0


def test_what_was_learned_is_in_the_snapshot() -> None:
    state = after(100.0)
    assert decode_state(encode_state(state)).leaving == state.leaving
