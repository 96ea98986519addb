"""What a night does next, and as what it ends."""

from __future__ import annotations

import pytest

from agent.store.views import SessionState
from agent.sweeps.night import SLACK_S, AskedToStop, CellFacts, Conclude, Continue, Next, StopAll, next_step, patience_s
from agent.sweeps.views import NightOutcome

RUN, STOPPING, STOPPED = SessionState.RUNNING, SessionState.STOPPING, SessionState.STOPPED
GRACE_S = 45.0
DONE, FAILED = SessionState.FINISHED, SessionState.FAILED


def step(
    *states: SessionState | None,
    now: float = 0.0,
    asked: NightOutcome | None = None,
    n: int = 1,
    finish_by: float | None = 100.0,
    since: float | None = None,
    **more: bool,
) -> Next:
    cells = [
        CellFacts(position=place, state=state, n_measured=n if state is not None else 0, message="why", **more)
        for place, state in enumerate(states)
    ]
    stop = None if asked is None else AskedToStop(outcome=asked, at=0.0, grace_s=GRACE_S)
    return next_step(cells, cells_at_once=2, finish_by=finish_by, stop=stop, over_since=since, now=now)


def outcome(found: Next) -> NightOutcome:
    assert isinstance(found, Conclude)
    return found.outcome


def test_cells_start_in_order_and_no_more_than_may_run_at_once() -> None:
    assert step(None, None, None) == Continue(start=(0, 1))
    assert step(RUN, None, None) == Continue(start=(1,))
    assert step(RUN, RUN, None) == Continue()
    assert step(DONE, RUN, None) == Continue(start=(2,))


def test_what_the_night_before_left_goes_on_alone_and_first() -> None:
    assert step(RUN, None, is_resumed=True) == Continue()
    assert step(DONE, None, is_resumed=True) == Continue(start=(1,))


@pytest.mark.parametrize(
    ("now", "since"),
    [(100.0, None), (100.0 + SLACK_S - 1, 100.0), (9000.0, None), (9000.0 + SLACK_S - 1, 9000.0)],
    ids=["its hour", "soon after it", "woken long after it", "soon after that"],
)
def test_once_its_hour_is_seen_all_that_is_at_work_is_stopped_and_nothing_starts(
    now: float, since: float | None
) -> None:
    assert step(RUN, STOPPING, None, now=now, since=since) == StopAll(positions=(0, 1))


@pytest.mark.parametrize("since", [100.0, 9000.0])
def test_it_ends_a_minute_after_that_whatever_its_sessions_do(since: float) -> None:
    assert outcome(step(RUN, None, now=since + SLACK_S, since=since)) is NightOutcome.DEADLINE


def test_what_was_finished_by_the_hour_is_done() -> None:
    assert outcome(step(DONE, DONE, now=101.0)) is NightOutcome.DONE
    assert outcome(step(DONE, STOPPED, now=101.0)) is NightOutcome.DEADLINE
    assert outcome(step(DONE, None, now=101.0)) is NightOutcome.DEADLINE


def test_sessions_that_left_before_the_hour_because_nothing_more_fits_end_by_it() -> None:
    assert outcome(step(STOPPED, is_left_by_hour=True)) is NightOutcome.DEADLINE
    assert outcome(step(STOPPED)) is NightOutcome.STOPPED


def test_somebody_who_ends_it_names_how_it_ended() -> None:
    assert step(RUN, asked=NightOutcome.REPLACED) == StopAll(positions=(0,))
    assert outcome(step(STOPPED, None, asked=NightOutcome.REPLACED)) is NightOutcome.REPLACED


def test_a_stop_of_a_night_without_an_hour_waits_for_the_grace_of_its_jobs_and_no_longer() -> None:
    late = patience_s(GRACE_S)
    assert late == SLACK_S + GRACE_S
    asked = NightOutcome.STOPPED
    assert step(STOPPING, asked=asked, finish_by=None, now=late - 1) == StopAll(positions=(0,))
    assert outcome(step(STOPPING, asked=asked, finish_by=None, now=late)) is NightOutcome.STOPPED


def test_a_night_without_any_value_has_failed_and_says_why() -> None:
    assert step(FAILED, n=0) == Conclude(outcome=NightOutcome.FAILED, message="why")
    assert outcome(step(DONE, n=0)) is NightOutcome.FAILED
    assert outcome(step(FAILED, DONE)) is NightOutcome.DONE


def test_a_spent_budget_is_told() -> None:
    assert outcome(step(DONE, is_budget_spent=True)) is NightOutcome.BUDGET
