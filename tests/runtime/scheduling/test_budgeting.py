"""Budgets of device time: counted as attempts end, refused and enforced with the arithmetic."""

from __future__ import annotations

import pytest
from core_language import NOW, Journal, Step, cluster, job, queued, running, then

from runtime.model.budgets import Budget, BudgetScope
from runtime.model.check import check
from runtime.model.codec import decode_state, encode_state
from runtime.model.events import AttemptEnded, BudgetLifted, BudgetSet, Event, JobEnded, StopOrdered, Then
from runtime.model.outcome import ExitFacts, classify, classify_lost
from runtime.model.state import State
from runtime.model.states import AttemptOutcome, ExitReason, JobState, StopCause
from runtime.scheduling.budgeting import asked_s, bill, events_from_budgets, explain_shortage, next_used_up_s

VISION = Budget(scope=BudgetScope.PROJECT, name="vision", limit_s=100.0)
S1 = Budget(scope=BudgetScope.SESSION, name="s1", limit_s=100.0)


def happened(event: Event) -> Step:
    return lambda journal: journal.record(event)


def budget(of: Budget) -> Step:
    return happened(BudgetSet(budget=of))


def ended(job_id: str, *, after_s: float = 0.0) -> Step:
    def step(journal: Journal) -> None:
        journal.record(_end(job_id), journal.state.clock_s + after_s)

    return step


def _end(job_id: str) -> AttemptEnded:
    return AttemptEnded(
        job_id=job_id,
        attempt=1,
        outcome=AttemptOutcome.SUCCEEDED,
        exit_reason=ExitReason.COMPLETED,
        exit_code=0,
        evidence=None,
        then=Then.END,
        end_state=JobState.SUCCEEDED,
    )


def follows(state: State, now_s: float = NOW) -> list[str]:
    words = []
    for event in events_from_budgets(state, now_s):
        match event:
            case StopOrdered():
                words.append(f"stop {event.job_id} ({event.cause})")
            case JobEnded():
                words.append(f"end {event.job_id} ({event.end_state}, {event.exit_reason})")
    return words


def begun_s(state: State, job_id: str) -> float:
    attempt = state.jobs[job_id].attempt
    assert attempt is not None
    return attempt.ordered_at_s


def test_devices_count_from_the_order_to_the_end_and_for_each_of_them() -> None:
    state = cluster("a:4", running("j1", on="a:0-1", project="vision"), budget(VISION))
    began = begun_s(state, "j1")
    assert bill(state, VISION, began + 30).spent_s == 60.0
    then(state, ended("j1"))
    assert state.spent["project vision"] == pytest.approx(2 * (state.clock_s - began))


def test_a_budget_that_comes_later_counts_what_was_used_before() -> None:
    state = cluster("a:4", running("j1", on="a:0", project="vision"), ended("j1", after_s=9.0), budget(VISION))
    assert bill(state, VISION, NOW).spent_s == state.spent["project vision"] > 0


def test_a_session_and_its_project_are_both_charged() -> None:
    state = cluster("a:4", running("j1", on="a:0", project="vision", session="s1"), ended("j1", after_s=9.0))
    assert state.spent["project vision"] == state.spent["session s1"] > 0


def test_what_is_used_up_ends_and_others_go_on() -> None:
    state = cluster(
        "a:4",
        running("j1", on="a:0", project="vision"),
        running("j2", on="a:1"),
        queued("j3", project="vision"),
        queued("j4"),
        budget(VISION),
    )
    began = begun_s(state, "j1")
    assert follows(state, began + 99.0) == []
    assert follows(state, began + 100.0) == ["stop j1 (budget)", "end j3 (cancelled, over_budget)"]


def test_an_attempt_is_asked_once_and_a_weaker_cause_is_overtaken() -> None:
    state = cluster("a:1", running("j1", on="a:0", project="vision"), budget(VISION))
    late = begun_s(state, "j1") + 200.0
    asked = list(events_from_budgets(state, late))
    then(state, *(happened(event) for event in asked))
    assert follows(state, late) == []
    held = cluster("a:1", running("j1", on="a:0", project="vision"), budget(VISION))
    pause = StopOrdered(job_id="j1", attempt=1, cause=StopCause.PAUSE, reason="noise", beneficiary=None, grace_s=5.0)
    then(held, happened(pause))
    assert follows(held, late) == ["stop j1 (budget)"]


def test_a_round_is_due_when_the_budget_will_be_used_up() -> None:
    state = cluster("a:4", running("j1", on="a:0-1", project="vision"), budget(VISION))
    began = begun_s(state, "j1")
    assert next_used_up_s(state, began + 10.0) == pytest.approx(began + 50.0)
    assert next_used_up_s(cluster("a:4", queued("j1", project="vision"), budget(VISION)), NOW) is None


def test_what_was_lifted_binds_nobody() -> None:
    state = cluster("a:1", running("j1", on="a:0", project="vision"), budget(VISION))
    then(state, happened(BudgetLifted(scope=BudgetScope.PROJECT, name="vision")))
    assert follows(state, NOW + 1e6) == []
    assert next_used_up_s(state, NOW) is None


def known(seconds: float, project: str = "vision") -> Step:
    """Three jobs of the project's experiment ran so long."""

    def step(journal: Journal) -> None:
        for _ in range(3):
            journal.state.estimates.learn(job("j99", project=project, n_devices=2), seconds)

    return step


def test_live_jobs_of_known_length_are_counted_and_the_others_are_named() -> None:
    state = cluster(
        "a:4",
        known(20.0),
        queued("j1", project="vision", n_devices=2),
        queued("j2", project="vision", experiment="new", timeout_s=1000.0),
        queued("j3"),
        budget(VISION),
    )
    found = bill(state, VISION, NOW)
    assert (found.spent_s, found.committed_s, found.n_unknown) == (0.0, 40.0, 1)
    assert found.lacks_s(60.0) == 0.0 < found.lacks_s(61.0)
    assert explain_shortage(found, 70.0) == (
        "project vision may use 100 device-seconds: 0 spent + 40 that its live jobs are expected to need + "
        "70 for this one (1 of them of unknown length, counted as 0) = 110"
    )


def test_a_time_limit_bounds_what_is_expected_and_is_no_expectation_itself() -> None:
    state = cluster(
        "a:4",
        known(20.0),
        queued("j1", project="vision", n_devices=2, timeout_s=5.0, grace_s=0.0),
        queued("j2", project="vision", experiment="new", timeout_s=5.0),
    )
    assert asked_s(state, state.jobs["j1"]) == 10.0
    assert asked_s(state, state.jobs["j2"]) is None


def test_a_snapshot_keeps_budgets_and_what_was_spent() -> None:
    state = cluster("a:2", running("j1", on="a:0", project="vision"), ended("j1"), budget(VISION), budget(S1))
    check(state)
    again = decode_state(encode_state(state))
    assert (again.budgets, again.spent) == (state.budgets, state.spent)
    assert list(again.budgets) == ["project vision", "session s1"]


def test_an_attempt_that_is_done_before_it_is_stopped_has_succeeded() -> None:
    done = classify(ExitFacts(stop=StopCause.BUDGET, exit_code=0))
    assert (done.outcome, done.reason) == (AttemptOutcome.SUCCEEDED, ExitReason.COMPLETED)


@pytest.mark.parametrize("exit_code", [75, 1, -15, None])
def test_an_attempt_that_is_stopped_for_a_budget_is_cancelled(exit_code: int | None) -> None:
    found = classify(ExitFacts(stop=StopCause.BUDGET, exit_code=exit_code, stop_reason="used up"))
    assert found == (AttemptOutcome.CANCELLED, ExitReason.OVER_BUDGET, "used up")
    lost = classify_lost(StopCause.BUDGET, "gone")
    assert (lost.outcome, lost.reason) == (AttemptOutcome.CANCELLED, ExitReason.OVER_BUDGET)
