"""The transitions: which are legal, what each changes, and that late ones change nothing."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import get_args

import pytest
from core_language import (
    Journal,
    cluster,
    finished,
    gone,
    job,
    node,
    placements,
    queued,
    running,
    starting,
    stopping,
    then,
)

from runtime.model.apply import TRANSITIONS, JobEvent, apply
from runtime.model.check import check
from runtime.model.errors import IllegalTransition, OutOfSequence
from runtime.model.events import (
    AttemptEnded,
    AttemptStarted,
    CheckpointSeen,
    Event,
    JobEnded,
    JobSubmitted,
    NodeJoined,
    NodeLeft,
    Recorded,
    SessionFenced,
    StartOrdered,
    StopOrdered,
    Then,
)
from runtime.model.nouns import Job
from runtime.model.state import State, displaced, holder_of
from runtime.model.states import AttemptOutcome, ExitReason, JobState, StopCause
from runtime.model.table import transition_table

TABLE = Path(__file__).parent / "samples" / "transitions.md"


def record(state: State, event: Event, at_s: float = 0.0) -> State:
    Journal(state=state).record(event, at_s)
    check(state)
    return state


def ended(
    outcome: AttemptOutcome = AttemptOutcome.FAILED,
    reason: ExitReason = ExitReason.CODE_ERROR,
    what: Then = Then.RETRY,
    end_state: JobState | None = None,
    attempt: int = 1,
    not_before_s: float = 0.0,
) -> AttemptEnded:
    return AttemptEnded(
        job_id="j1",
        attempt=attempt,
        outcome=outcome,
        exit_reason=reason,
        exit_code=1,
        evidence=None,
        then=what,
        end_state=end_state,
        not_before_s=not_before_s,
    )


def stop(cause: StopCause, beneficiary: str | None = None, grace_s: float = 1.0) -> StopOrdered:
    return StopOrdered(job_id="j1", attempt=1, cause=cause, reason=cause, beneficiary=beneficiary, grace_s=grace_s)


SETUPS = {
    None: lambda: cluster("a:2"),
    JobState.QUEUED: lambda: cluster("a:2", queued("j1")),
    JobState.STARTING: lambda: cluster("a:2", starting("j1", on="a:0")),
    JobState.RUNNING: lambda: cluster("a:2", running("j1", on="a:0", max_retries=1)),
    JobState.STOPPING: lambda: cluster("a:2", stopping("j1", on="a:0")),
}
EVENTS: dict[type, Event] = {
    JobSubmitted: JobSubmitted(job=job("j1")),
    StartOrdered: StartOrdered(job_id="j1", attempt=1, placements=placements("a:0"), reason="test"),
    AttemptStarted: AttemptStarted(job_id="j1", attempt=1, pid=1),
    CheckpointSeen: CheckpointSeen(job_id="j1", attempt=1, step=1),
    StopOrdered: stop(StopCause.CANCEL),
    AttemptEnded: ended(what=Then.END, end_state=JobState.FAILED),
    JobEnded: JobEnded(job_id="j1", end_state=JobState.CANCELLED, exit_reason=ExitReason.CANCELLED, reason="asked"),
}
REPORTS = (AttemptStarted, CheckpointSeen, StopOrdered, AttemptEnded)


def test_every_job_event_is_in_the_table() -> None:
    listed = {event_class for _, event_class in TRANSITIONS}
    assert listed == set(EVENTS) == set(get_args(JobEvent))


@pytest.mark.parametrize(("state", "event_class"), [(s, e) for s, e in product(SETUPS, EVENTS)])
def test_the_table_says_what_each_state_accepts(state: JobState | None, event_class: type) -> None:
    live = SETUPS[state]()
    before = repr(live)
    targets = TRANSITIONS.get((state, event_class))
    if targets is not None:
        record(live, EVENTS[event_class])
        found = live.jobs.get("j1")
        arrived = found.state if found is not None else JobState.FAILED
        assert arrived in targets
        assert (found is None) == (event_class in (AttemptEnded, JobEnded))
        return
    if event_class in REPORTS and state is None:
        apply(
            live,
            Recorded(
                seq=live.last_seq + 1, at_s=0.0, actor="t", on_behalf_of=None, project=None, event=EVENTS[event_class]
            ),
        )
        assert not live.jobs
        return
    with pytest.raises(IllegalTransition, match="j1"):
        record(live, EVENTS[event_class])
    assert repr(live) == before


def test_the_table_is_the_documented_one() -> None:
    assert transition_table() == TABLE.read_text()


def test_an_illegal_transition_tells_the_whole_story() -> None:
    state = cluster("a:2", running("j1", on="a:0"))
    with pytest.raises(IllegalTransition) as caught:
        record(state, JobEnded(job_id="j1", end_state=JobState.FAILED, exit_reason=ExitReason.CANCELLED, reason="x"))
    assert (caught.value.subject, caught.value.from_state, caught.value.event) == ("j1", "running", "job_ended")
    assert caught.value.recent == ("2 job_submitted", "3 start_ordered #1", "4 attempt_started #1")
    assert "3 start_ordered #1" in str(caught.value)


def test_events_come_without_gaps() -> None:
    state = cluster("a:1")
    entry = Recorded(
        seq=3, at_s=0.0, actor="t", on_behalf_of=None, project=None, event=SessionFenced(session_id="s1", fence=1)
    )
    with pytest.raises(OutOfSequence, match="expected 2"):
        apply(state, entry)
    with pytest.raises(OutOfSequence):
        apply(state, replace(entry, seq=1))


def test_a_start_takes_only_free_devices() -> None:
    state = cluster("a:2", running("j1", on="a:0"), queued("j2", n_devices=2))
    with pytest.raises(IllegalTransition, match=r"devices \[0\] of node a are not free"):
        record(state, StartOrdered(job_id="j2", attempt=1, placements=placements("a:0-1"), reason="x"))


def test_a_start_takes_the_whole_gang() -> None:
    state = cluster("a:2", queued("j2", n_devices=2))
    with pytest.raises(IllegalTransition, match="placed on 1 devices, asked for 2"):
        record(state, StartOrdered(job_id="j2", attempt=1, placements=placements("a:0"), reason="x"))


def test_a_start_names_a_known_node_and_the_next_attempt() -> None:
    state = cluster("a:2", queued("j2"))
    with pytest.raises(IllegalTransition, match="node b is not known"):
        record(state, StartOrdered(job_id="j2", attempt=1, placements=placements("b:0"), reason="x"))
    with pytest.raises(IllegalTransition, match="the next attempt is 1, not 2"):
        record(state, StartOrdered(job_id="j2", attempt=2, placements=placements("a:0"), reason="x"))


def test_a_report_of_an_attempt_that_was_never_ordered_is_a_bug() -> None:
    with pytest.raises(IllegalTransition, match="attempt 2 was never ordered"):
        record(cluster("a:2", running("j1", on="a:0")), AttemptStarted(job_id="j1", attempt=2, pid=1))


LATE_REPORTS = (EVENTS[AttemptStarted], EVENTS[CheckpointSeen], EVENTS[StopOrdered], EVENTS[AttemptEnded])


@pytest.mark.parametrize("late", LATE_REPORTS, ids=lambda event: type(event).__name__)
def test_a_late_report_changes_nothing_in_the_queue(late: Event) -> None:
    state = cluster("a:2", running("j1", on="a:0"), gone("j1"))
    before = dict(state.jobs)
    assert record(state, late).jobs == before


@pytest.mark.parametrize("late", LATE_REPORTS, ids=lambda event: type(event).__name__)
def test_a_late_report_changes_nothing_in_the_next_attempt(late: Event) -> None:
    state = cluster("a:2", running("j1", on="a:0"), gone("j1"))
    record(state, StartOrdered(job_id="j1", attempt=2, placements=placements("a:1"), reason="x"))
    before = dict(state.jobs)
    assert record(state, late).jobs == before


@pytest.mark.parametrize("late", LATE_REPORTS, ids=lambda event: type(event).__name__)
def test_a_late_report_of_an_ended_job_changes_nothing(late: Event) -> None:
    assert record(cluster("a:2", running("j1", on="a:0"), finished("j1")), late).jobs == {}


def test_an_ended_job_leaves_and_frees_its_devices() -> None:
    state = cluster("a:2", running("j1", on="a:0-1"), finished("j1"))
    assert (state.jobs, state.recent, state.n_devices_free) == ({}, {}, 2)


def only(state: State) -> Job:
    (found,) = state.jobs.values()
    return found


def test_a_requeue_keeps_place_and_checkpoint_and_costs_no_retry() -> None:
    state = cluster("a:1", stopping("j1", on="a:0", saved_at_s=5.0), gone("j1", at_s=9.0))
    found = only(state)
    assert (found.state, found.order, found.checkpoint_step) == (JobState.QUEUED, 1, 1)
    assert (found.n_retries, found.n_preemptions, found.queued_since_s) == (0, 1, 9.0)


def test_a_retry_costs_one_and_backs_off() -> None:
    state = cluster("a:1", running("j1", on="a:0", max_retries=1))
    found = only(record(state, ended(what=Then.RETRY, not_before_s=50.0)))
    assert (found.n_retries, found.n_preemptions, found.not_before_s) == (1, 0, 50.0)
    assert [entry.job_id for entry in state.index.delayed] == ["j1"]
    record(state, SessionFenced(session_id="s1", fence=1), at_s=50.0)
    assert state.index.delayed == []


def test_only_an_ending_names_an_end_state() -> None:
    with pytest.raises(IllegalTransition, match="its end state is None"):
        record(cluster("a:1", running("j1", on="a:0")), ended(what=Then.END))
    with pytest.raises(IllegalTransition, match="its end state is queued"):
        record(cluster("a:1", running("j1", on="a:0")), ended(what=Then.END, end_state=JobState.QUEUED))
    with pytest.raises(IllegalTransition, match="does not end the job, but names failed"):
        record(cluster("a:1", running("j1", on="a:0")), ended(what=Then.REQUEUE, end_state=JobState.FAILED))


def test_asking_for_a_requeue_without_a_checkpoint_is_counted() -> None:
    asked = ended(AttemptOutcome.PREEMPTED, ExitReason.REQUEUE_ASKED, Then.REQUEUE)
    state = record(cluster("a:1", running("j1", on="a:0")), asked)
    assert only(state).n_stalled == 1
    record(state, StartOrdered(job_id="j1", attempt=2, placements=placements("a:0"), reason="x"))
    record(state, CheckpointSeen(job_id="j1", attempt=2, step=7))
    assert only(record(state, replace(asked, attempt=2))).n_stalled == 0


def test_a_preemption_is_no_stall() -> None:
    assert only(cluster("a:1", stopping("j1", on="a:0"), gone("j1"))).n_stalled == 0


def test_checkpoints_only_grow() -> None:
    state = cluster("a:1", running("j1", on="a:0"))
    record(state, CheckpointSeen(job_id="j1", attempt=1, step=7), at_s=3.0)
    found = only(record(state, CheckpointSeen(job_id="j1", attempt=1, step=5), at_s=4.0))
    assert found.checkpoint_step == 7
    assert found.attempt is not None
    assert found.attempt.checkpoint_at_s == 3.0


def test_a_second_start_report_changes_nothing() -> None:
    state = cluster("a:1", running("j1", on="a:0", at_s=3.0))
    before = only(state)
    assert only(record(state, AttemptStarted(job_id="j1", attempt=1, pid=1), at_s=9.0)) == before


def test_a_start_report_while_stopping_keeps_it_stopping() -> None:
    state = cluster("a:1", starting("j1", on="a:0"))
    record(state, stop(StopCause.CANCEL))
    assert only(record(state, AttemptStarted(job_id="j1", attempt=1, pid=1))).state is JobState.STOPPING


def test_a_cancel_overtakes_a_preemption_and_keeps_its_beneficiary() -> None:
    state = cluster("a:1", running("j1", on="a:0"))
    record(state, stop(StopCause.PREEMPT, beneficiary="j2"))
    found = only(record(state, stop(StopCause.CANCEL)))
    assert found.attempt is not None
    assert found.attempt.stop is not None
    assert (found.attempt.stop.cause, found.attempt.stop.beneficiary) == (StopCause.CANCEL, "j2")


def test_a_weaker_cause_overtakes_nothing() -> None:
    state = record(cluster("a:1", running("j1", on="a:0")), stop(StopCause.CANCEL))
    before = only(state)
    assert only(record(state, stop(StopCause.SHUTDOWN))) == before


def test_a_new_job_has_no_past() -> None:
    with pytest.raises(IllegalTransition, match="a new job is queued"):
        record(cluster("a:1"), JobSubmitted(job=job("j1").but(n_attempts=1)))


def test_fences_only_grow() -> None:
    state = record(cluster("a:1"), SessionFenced(session_id="s1", fence=4))
    assert record(state, SessionFenced(session_id="s1", fence=3)).fences == {"s1": 4}


def test_a_node_that_registers_again_keeps_its_attempts() -> None:
    state = cluster("a:2", running("j1", on="a:1"))
    record(state, NodeJoined(node=node("a", "3", generation=2)))
    assert state.index.free == {"a": 0b101}
    assert state.nodes["a"].generation == 2


def test_an_older_registration_changes_nothing() -> None:
    state = cluster("a:2")
    record(state, NodeJoined(node=node("a", "3", generation=2)))
    record(state, NodeJoined(node=node("a", "4", generation=1)))
    record(state, NodeLeft(node_id="a", generation=1, reason="late"))
    record(state, NodeLeft(node_id="b", generation=1, reason="unknown"))
    assert state.n_devices == 3


@pytest.mark.parametrize("devices", ["1", "2xH100"])
def test_a_node_can_not_register_away_what_is_held(devices: str) -> None:
    state = cluster("a:2", running("j1", on="a:1"))
    again = node("a", devices, generation=2)
    assert [found.job_id for found in displaced(state, again)] == ["j1"]
    with pytest.raises(IllegalTransition, match="held by j1"):
        record(state, NodeJoined(node=again))


def test_a_node_leaves_after_its_attempts() -> None:
    state = cluster("a:2", running("j1", on="a:1"))
    with pytest.raises(IllegalTransition, match="j1 still hold its devices"):
        record(state, NodeLeft(node_id="a", generation=1, reason="gone"))
    state = then(state, gone("j1"))
    assert record(state, NodeLeft(node_id="a", generation=1, reason="gone")).nodes == {}


def test_the_holder_of_a_device_is_found() -> None:
    state = cluster("a:2", running("j1", on="a:1"))
    holder = holder_of(state, "a", 1)
    assert holder is not None
    assert holder.job_id == "j1"
    assert holder_of(state, "a", 0) is None


def test_counts_follow_the_jobs() -> None:
    state = cluster("a:3", running("j1", on="a:1"), queued("j2"), stopping("j3", on="a:0"))
    assert (state.n_devices, state.n_devices_free, state.n_queued, state.n_running) == (3, 1, 1, 2)
