"""A clearly better arm gets most of the slots soon; one that is not, or not surely, moves none."""

from __future__ import annotations

from dataclasses import replace

import pytest
from agent_worlds import a_task
from planner_builders import a_history, a_trial

from agent.planner.history import History
from agent.planner.lead import Seen, lag, lead
from agent.planner.portfolio import CONTROL, MODEL_ARM, yields
from agent.task import Task
from agent.thinking.suggesting import MODEL

PLANE = {name: {"type": "float", "low": 0.0, "high": 1.0, "default": 0.1} for name in ("x", "y")}
ARMS = (CONTROL, "refiner", "random", MODEL_ARM)


def seen(arm: list[float], others: list[float]) -> list[Seen]:
    return [
        Seen(loss=loss, weight=1.0, is_arms=is_arms)
        for is_arms, losses in ((True, arm), (False, others))
        for loss in losses
    ]


def test_two_wins_are_not_a_full_lead_and_eight_are() -> None:
    others = [1.0, 2.0, 3.0]
    assert 0.0 < lead(seen([0.5] * 2, others)) < 1.0
    assert lead(seen([0.5] * 8, others)) == 1.0


@pytest.mark.parametrize("arm", [[], [4.0] * 8, [2.0] * 8, [0.5, 4.0] * 4])
def test_who_is_equal_or_worse_or_has_nothing_does_not_lead(arm: list[float]) -> None:
    assert lead(seen(arm, [1.0, 2.0, 3.0])) == 0.0


def test_the_bound_is_that_of_the_formula() -> None:
    rate = (1 + 1) / 3
    sure = rate - 0.5 * (rate * (1 - rate) / 3) ** 0.5
    assert lead(seen([0.0], [1.0])) == pytest.approx((sure - 0.5) / 0.15)


def test_who_lags_is_beaten_as_surely_as_who_leads_beats() -> None:
    others = [1.0, 2.0, 3.0]
    assert lag(seen([3.5] * 2, others)) == lead(seen([0.5] * 2, others))
    assert lag(seen([2.0] * 8, others)) == 0.0


def searched(task: Task, good: str, *, value_of_good: float = 0.9) -> History:
    """Fifteen trials in turns; the trials of one arm have another value than all others, falling slowly."""
    value = {True: value_of_good, False: 0.2}
    trials = []
    for number in range(1, 16):
        arm = ARMS[number % len(ARMS)]
        params = {"x": number / 20, "y": 0.5}
        trial = a_trial(task, number, params, value[arm == good] - 0.001 * number)
        trials.append(replace(trial, suggested_by=arm))
    return a_history(*trials)


def test_a_model_that_is_good_throughout_gets_most_slots_within_fifteen_trials() -> None:
    task = a_task(space=PLANE, budgets={"trials": 100})
    found = yields(task, searched(task, MODEL_ARM), ARMS)
    assert found[MODEL_ARM].share > 0.5
    assert found[CONTROL].share >= task.search.control_share
    assert sum(one.share for one in found.values()) == pytest.approx(1.0)


def test_a_model_that_clearly_loses_gives_up_its_slots_and_is_still_asked() -> None:
    task = a_task(space=PLANE, budgets={"trials": 100})
    found = yields(task, searched(task, MODEL_ARM, value_of_good=0.1), ARMS)
    even = yields(task, searched(task, "refiner", value_of_good=0.1), ARMS)
    assert 0.02 <= found[MODEL_ARM].share < 0.06 < even["refiner"].share
    assert sum(one.share for one in found.values()) == pytest.approx(1.0)


def test_a_model_that_searches_alone_keeps_its_slots() -> None:
    task = a_task(space=PLANE, budgets={"trials": 100})
    history = searched(task, MODEL_ARM, value_of_good=0.1)
    assert yields(task, history, [MODEL_ARM])[MODEL_ARM].share == pytest.approx(1.0)


def test_another_arm_that_is_good_throughout_takes_nothing_by_its_lead() -> None:
    task = a_task(space=PLANE, budgets={"trials": 100})
    found = yields(task, searched(task, "refiner"), ARMS)
    assert found["refiner"].share < 0.5


def test_the_arm_that_can_lead_is_the_models() -> None:
    assert MODEL_ARM == MODEL
