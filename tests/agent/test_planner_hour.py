"""What may still be launched before the hour by which a session has to be over."""

from __future__ import annotations

from typing import Any

import pytest
from agent_worlds import a_task
from planner_builders import a_history, a_trial

from agent.planner.budget import Spend, reserve_reached, seconds_left
from agent.planner.hour import Hour, fits
from agent.planner.plan import Phase, first_plan, revised, unwanted
from agent.store.views import Purpose, TrialFacts, TrialState, TrialView
from agent.task import Budgets

DEFAULT = {"x": 0.2, "kind": "a"}
GOOD = {"x": 0.7, "kind": "a"}


def may_launch(
    left_s: float, *trials: TrialView, trial: TrialView | None = None, n_slots: int = 2, grace_s: float = 30.0
) -> bool:
    task = a_task(job={"command": "train", "grace_seconds": grace_s})
    history = a_history(*trials)
    return fits(task, history, Hour.of(1000.0 + left_s, history, 1000.0), n_slots, trial)


def took(number: int, seconds: float, *, checkpoint_step: int | None = None) -> TrialView:
    facts = TrialFacts(checkpoint_step=checkpoint_step)
    return a_trial(a_task(), number, {"x": number / 100, "kind": "a"}, 0.5, device_seconds=seconds, facts=facts)


@pytest.mark.parametrize(
    ("left_s", "times", "expected"),
    [
        (0.0, [], False),
        (1.0, [], True),
        (100.0, [100.0], True),
        (99.0, [100.0], False),
        (100.0, [50.0, 101.0, 60.0], False),
    ],
)
def test_a_trial_that_can_not_go_on_is_launched_when_the_longest_so_far_would_end(
    left_s: float, times: list[float], expected: bool
) -> None:
    assert may_launch(left_s, *(took(i + 1, t) for i, t in enumerate(times))) is expected


@pytest.mark.parametrize(("left_s", "expected"), [(39.0, False), (40.0, True)])
def test_one_that_can_go_on_needs_its_grace_and_a_useful_part(left_s: float, expected: bool) -> None:
    assert may_launch(left_s, took(1, 100.0, checkpoint_step=7)) is expected


@pytest.mark.parametrize(("used_s", "expected"), [(40.0, False), (60.0, True)])
def test_what_has_begun_needs_less(used_s: float, expected: bool) -> None:
    begun = a_trial(a_task(), 2, GOOD, state=TrialState.PROPOSED, device_seconds=used_s)
    assert may_launch(50.0, took(1, 100.0), begun, trial=begun) is expected


def test_one_that_waits_for_a_slot_begins_later() -> None:
    running = [a_trial(a_task(), n, {"x": n / 100, "kind": "b"}) for n in (2, 3)]
    assert may_launch(150.0, took(1, 100.0), running[0])
    assert not may_launch(150.0, took(1, 100.0), *running)
    assert may_launch(200.0, took(1, 100.0), *running)


def test_nothing_is_launched_once_a_job_had_to_leave_for_this_hour() -> None:
    left = a_trial(a_task(), 1, DEFAULT, state=TrialState.PROPOSED, facts=TrialFacts(left_for=1500.0))
    assert not may_launch(500.0, left)
    assert may_launch(600.0, left), "that was another night"


def test_a_session_without_an_hour_launches_as_ever() -> None:
    assert Hour.of(None, a_history(), 5.0) is None
    assert fits(a_task(), a_history(took(1, 1e9)), None, 2)


@pytest.mark.parametrize(
    ("wall_minutes", "hour_left_s", "expected"),
    [(None, None, None), (2, None, 60.0), (None, 50.0, 50.0), (2, 50.0, 50.0), (2, 70.0, 60.0)],
)
def test_the_nearer_of_wall_time_and_hour_counts(
    wall_minutes: float | None, hour_left_s: float | None, expected: float | None
) -> None:
    spend = Spend(device_seconds=0, wall_seconds=60, hour_left_s=hour_left_s)
    assert seconds_left(Budgets(trials=1, wall_minutes=wall_minutes), spend) == expected


@pytest.mark.parametrize(("hour_left_s", "closes"), [(46.0, False), (45.0, True)])
def test_the_search_ends_in_time_for_what_confirms_its_best(hour_left_s: float, closes: bool) -> None:
    task = a_task(budgets={"trials": 9}, seeds={"fresh": 3})
    history = a_history(a_trial(task, 1, DEFAULT, 0.5))
    spend = Spend(device_seconds=0, wall_seconds=0, n_slots=2, hour_left_s=hour_left_s)
    said = reserve_reached(task, history, spend)
    assert (said == "the 45 seconds left are needed for 7 confirming trials") is closes


def begun(number: int, params: dict[str, Any], **changes: Any) -> TrialView:
    return a_trial(a_task(), number, params, state=TrialState.PROPOSED, device_seconds=20.0, **changes)


def test_a_closed_search_waits_for_what_had_begun_and_does_not_withdraw_it() -> None:
    task = a_task(budgets={"trials": 9, "wall_minutes": 1})
    trials = [a_trial(task, 1, DEFAULT, 0.5), begun(2, GOOD)]
    new = a_trial(task, 3, {"x": 0.9, "kind": "b"}, state=TrialState.PROPOSED)
    history = a_history(*trials, new)
    plan = revised(first_plan(task), task, history, Spend(device_seconds=0, wall_seconds=50))
    assert plan.search_closed is not None
    assert (plan.phase, plan.chosen) == (Phase.SEARCH, None)
    assert list(unwanted(plan, task, history)) == [new]
    ended = a_history(trials[0], a_trial(task, 2, GOOD, 0.9))
    assert revised(plan, task, ended, Spend(device_seconds=0, wall_seconds=50)).phase is Phase.CONFIRM


def test_a_spent_budget_wants_nothing_more_also_not_of_what_had_begun() -> None:
    task = a_task(budgets={"trials": 9, "device_seconds": 30})
    history = a_history(a_trial(task, 1, DEFAULT, 0.5), begun(2, GOOD, purpose=Purpose.REPLICATE, seed=100))
    plan = revised(first_plan(task), task, history, Spend(device_seconds=30, wall_seconds=0))
    assert [t.trial_id for t in unwanted(plan, task, history)] == ["s1-t2"]
