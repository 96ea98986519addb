"""The hour by which a job is to be over: who is asked to leave when, what is not started any more, what ends then."""

from __future__ import annotations

import pytest
from core_language import NOW, Journal, Step, cluster, decide, gone, queued, round_of, running, stopping, then

from runtime.model.budgets import Budget, BudgetScope
from runtime.model.codec import decode_state, encode_state
from runtime.model.events import BudgetSet, Event, HoldPlaced, JobEnded, JobSubmitted, StopOrdered
from runtime.model.holds import Hold, HoldScope
from runtime.model.leaving import Departures
from runtime.model.nouns import Dependency, Job
from runtime.model.outcome import ExitFacts, classify, classify_lost, classify_unlaunched, disposition
from runtime.model.state import State
from runtime.model.states import (
    AttemptOutcome,
    Condition,
    ExitReason,
    FailureClass,
    JobState,
    StopCause,
    failure_class,
)
from runtime.scheduling.explain import explain
from runtime.scheduling.finishing import next_hour_s
from runtime.scheduling.lapses import events_from_lapse
from runtime.scheduling.policy import Policy
from runtime.scheduling.rehearsal import expected_start, stage

HOUR = NOW + 1000.0
"""With a grace of 30 s and 2 s for a kill, the last moment to ask is HOUR - 32."""


def happened(event: Event) -> Step:
    return lambda journal: journal.record(event)


def left_in(seconds: float) -> Step:
    """An attempt of the experiment took so long to leave."""

    def step(journal: Journal) -> None:
        journal.state.leaving.remember([Departures(project="default", experiment="test", seconds=(seconds,))])

    return step


def follows(state: State, now_s: float) -> list[str]:
    """What becomes true by itself; recorded, until nothing more does."""
    words = []
    while events := events_from_lapse(state, now_s):
        for event in events:
            match event:
                case StopOrdered():
                    words.append(f"stop {event.job_id} ({event.cause}, {event.grace_s:g} s)")
                case JobEnded():
                    words.append(f"end {event.job_id} ({event.end_state}, {event.exit_reason})")
        then(state, *(happened(event) for event in events))
    return words


@pytest.mark.parametrize(
    ("at_s", "expected"),
    [
        (HOUR - 32.1, []),
        (HOUR - 32.0, ["stop j1 (deadline, 30 s)"]),
        (HOUR - 20.0, ["stop j1 (deadline, 30 s)"]),
        (HOUR + 3600.0, ["stop j1 (deadline, 30 s)"]),
    ],
    ids=["not before it has to", "in time for its grace and the kill", "asked late", "the runtime was away"],
)
def test_who_runs_is_asked_so_that_it_has_left_by_its_hour(at_s: float, expected: list[str]) -> None:
    assert follows(cluster("a:1", running("j1", on="a:0", finish_by_s=HOUR)), at_s) == expected


def test_the_grace_that_was_learned_is_the_one_that_counts() -> None:
    state = cluster("a:1", left_in(100.0), running("j1", on="a:0", finish_by_s=HOUR))
    assert follows(state, HOUR - 153.0) == []
    assert follows(state, HOUR - 152.0) == ["stop j1 (deadline, 150 s)"]


def test_a_long_grace_that_was_asked_too_late_is_cut() -> None:
    state = cluster("a:1", running("j1", on="a:0", finish_by_s=HOUR, grace_s=600.0))
    assert follows(state, HOUR - 102.0) == ["stop j1 (deadline, 100 s)"]
    late = cluster("a:1", running("j1", on="a:0", finish_by_s=HOUR, grace_s=600.0))
    assert follows(late, HOUR + 60.0) == ["stop j1 (deadline, 30 s)"]


@pytest.mark.parametrize(
    ("at_s", "expected"),
    [
        (HOUR - 32.1, []),
        (HOUR - 32.0, ["end j1 (cancelled, deadline)"]),
        (HOUR + 9.0, ["end j1 (cancelled, deadline)"]),
    ],
)
def test_who_waits_has_ended_as_soon_as_a_start_would_only_be_a_notice(at_s: float, expected: list[str]) -> None:
    assert follows(cluster("a:1", queued("j1", finish_by_s=HOUR)), at_s) == expected


def test_who_waits_is_measured_by_the_grace_that_it_would_get() -> None:
    assert follows(cluster("a:1", left_in(100.0), queued("j1", finish_by_s=HOUR)), HOUR - 152.0) == [
        "end j1 (cancelled, deadline)"
    ]


def waiting_job(**changes: object) -> Job:
    journal = Journal()
    queued("j5", finish_by_s=HOUR)(journal)
    return journal.state.jobs["j5"].but(**changes)


def test_what_is_held_delayed_or_waits_for_others_ends_with_its_hour_too() -> None:
    hold = Hold(scope=HoldScope.CLASS, name="exploratory", reason="", placed_at_s=0.0, placed_by="me")
    state = cluster(
        "a:1",
        running("j1", on="a:0"),
        happened(HoldPlaced(hold=hold)),
        queued("j2", finish_by_s=HOUR, priority="exploratory"),
        queued("j3", finish_by_s=HOUR, not_before_s=HOUR + 100.0),
        queued("j4"),
        happened(JobSubmitted(job=waiting_job(waits_for=(Dependency(on="j1", condition=Condition.OK),)))),
    )
    assert follows(state, HOUR) == [f"end {job_id} (cancelled, deadline)" for job_id in ("j2", "j3", "j5")]
    assert list(state.jobs) == ["j1", "j4"]


def test_of_two_that_end_at_one_hour_where_one_waits_for_the_other_both_do() -> None:
    waits_for = (Dependency(on="j1", condition=Condition.OK),)
    state = cluster("a:1", queued("j1", finish_by_s=HOUR), happened(JobSubmitted(job=waiting_job(waits_for=waits_for))))
    assert follows(state, HOUR) == ["end j1 (cancelled, deadline)", "end j5 (cancelled, deadline)"]


def test_a_job_whose_hour_and_budget_come_at_once_ends_once() -> None:
    budget = Budget(scope=BudgetScope.PROJECT, name="default", limit_s=1.0)
    state = cluster(
        "a:1",
        running("j1", on="a:0", finish_by_s=HOUR),
        queued("j2", finish_by_s=HOUR),
        happened(BudgetSet(budget=budget)),
    )
    assert follows(state, HOUR) == ["stop j1 (deadline, 30 s)", "end j2 (cancelled, deadline)"]


def test_who_leaves_already_is_not_asked_again_and_does_not_start_again() -> None:
    state = cluster("a:1", stopping("j1", on="a:0", finish_by_s=HOUR))
    assert follows(state, HOUR - 32.0) == []
    then(state, gone("j1"))
    assert follows(state, HOUR - 31.0) == ["end j1 (cancelled, deadline)"]


def test_a_departure_that_would_outlast_the_hour_is_cut_short() -> None:
    order = StopOrdered(job_id="j1", attempt=1, cause=StopCause.DRAIN, reason="", beneficiary=None, grace_s=900.0)
    state = cluster("a:1", running("j1", on="a:0", finish_by_s=HOUR))
    then(state, lambda journal: journal.record(order, HOUR - 500.0))
    assert follows(state, HOUR - 33.0) == []
    assert follows(state, HOUR - 32.0) == ["stop j1 (deadline, 30 s)"]


def test_a_round_is_due_when_the_next_hour_comes() -> None:
    state = cluster(
        "a:2", running("j1", on="a:0", finish_by_s=HOUR), queued("j2", finish_by_s=HOUR + 10.0, n_devices=2)
    )
    wake_s = NOW
    woken = []
    while (next_s := round_of(state, now_s=wake_s).next_wake_s) is not None:
        wake_s = next_s
        woken += [(wake_s - HOUR, words) for words in follows(state, wake_s)]
    assert woken == [(-32.0, "stop j1 (deadline, 30 s)"), (-22.0, "end j2 (cancelled, deadline)")]
    assert next_hour_s(cluster("a:1", queued("j1")), NOW) is None


def test_a_snapshot_keeps_the_hours() -> None:
    state = cluster("a:1", running("j1", on="a:0", finish_by_s=HOUR), queued("j2", finish_by_s=HOUR))
    assert decode_state(encode_state(state)) == state


def test_what_has_to_be_over_before_a_reservation_is_backfilled() -> None:
    state = cluster(
        "a:2",
        running("j1", on="a:0", timeout_s=500.0, grace_s=0.0, at_s=NOW),
        queued("j2", n_devices=2),
        queued("j3", finish_by_s=NOW + 400.0, experiment="short"),
        queued("j4", finish_by_s=NOW + 600.0, experiment="long"),
    )
    assert decide(state) == ["start j3 on a:1"]


def test_the_hour_of_who_runs_says_when_the_blocked_one_can_start() -> None:
    state = cluster("a:2", running("j1", on="a:0-1", finish_by_s=NOW + 400.0, at_s=NOW), queued("j2", n_devices=2))
    found = expected_start(stage(state, now_s=NOW), "j2", now_s=NOW, policy=Policy())
    assert found.at_s == NOW + 398.0


@pytest.mark.parametrize("exit_code", [75, 1, 93, -15, -9, None])
def test_an_attempt_that_is_not_done_at_its_hour_is_cancelled(exit_code: int | None) -> None:
    found = classify(ExitFacts(stop=StopCause.DEADLINE, exit_code=exit_code, stop_reason="by seven"))
    assert found == (AttemptOutcome.CANCELLED, ExitReason.DEADLINE, "by seven")
    for lost in (
        classify_lost(StopCause.DEADLINE, "gone"),
        classify_unlaunched(StopCause.DEADLINE, ExitReason.DISK_FULL, "gone"),
    ):
        assert (lost.outcome, lost.reason) == (AttemptOutcome.CANCELLED, ExitReason.DEADLINE)


def test_an_attempt_that_is_done_at_its_hour_has_succeeded_and_one_without_its_metrics_has_not() -> None:
    done = classify(ExitFacts(stop=StopCause.DEADLINE, exit_code=0))
    assert (done.outcome, done.reason) == (AttemptOutcome.SUCCEEDED, ExitReason.COMPLETED)
    without = classify(ExitFacts(stop=StopCause.DEADLINE, exit_code=0, missing_metrics=("loss",)))
    assert (without.outcome, without.reason) == (AttemptOutcome.CANCELLED, ExitReason.DEADLINE)


def test_a_job_that_ends_for_its_hour_is_nobodys_failure_and_is_not_tried_again() -> None:
    assert failure_class(AttemptOutcome.CANCELLED, ExitReason.DEADLINE) is FailureClass.NONE
    job = cluster("a:1", running("j1", on="a:0", max_retries=3)).jobs["j1"]
    follows_ = disposition(job, AttemptOutcome.CANCELLED, ExitReason.DEADLINE, now_s=NOW, policy=Policy())
    assert (follows_.end_state, follows_.exit_reason) == (JobState.CANCELLED, ExitReason.DEADLINE)


def test_explain_says_by_when_a_job_has_to_be_over_and_that_it_has_too_little_time() -> None:
    state = cluster("a:1", running("j1", on="a:0", finish_by_s=HOUR), queued("j2", finish_by_s=HOUR))
    said = "its hour (finish_by): it has to be over in 1000 s"
    assert explain(state, "j1", now_s=NOW, policy=Policy()).details == (said,)
    assert said in explain(state, "j2", now_s=NOW, policy=Policy()).details
    late = explain(state, "j2", now_s=HOUR + 10.0, policy=Policy())
    assert (late.summary, late.details) == (
        "j2 is about to end without a start: there is too little time left",
        ("its hour (finish_by): it had to be over 10 s ago",),
    )
    follows(state, HOUR - 32.0)
    leaving = explain(state, "j1", now_s=HOUR - 31.0, policy=Policy())
    assert leaving.summary == "j1 leaves because it has to be over by its hour"
    assert leaving.details[0] == "its hour (finish_by) came; it was asked to leave 32 s before"
