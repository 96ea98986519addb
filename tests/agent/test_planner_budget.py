"""The five limits of a task, one table each."""

from __future__ import annotations

from typing import Any

import pytest
from agent_worlds import a_task
from planner_builders import a_history, a_trial

from agent.planner.budget import (
    Spend,
    caps,
    device_seconds_at_most,
    device_seconds_left,
    refusal_of_a_call,
    reserve_reached,
    spent,
)


def a_spend(**changes: Any) -> Spend:
    return Spend(**{"device_seconds": 0.0, "wall_seconds": 0.0, **changes})


@pytest.mark.parametrize(
    ("budgets", "used", "said"),
    [
        ({"wall_minutes": 2}, {"wall_seconds": 119.0}, None),
        ({"wall_minutes": 2}, {"wall_seconds": 120.0}, "budgets.wall_minutes: 2 of 2 are used"),
        ({"device_seconds": 60}, {"device_seconds": 59.9}, None),
        ({"device_seconds": 60}, {"device_seconds": 61.0}, "budgets.device_seconds: 61 of 60 are used"),
        ({"cost_usd": 2, "usd_per_device_hour": 3.6}, {"device_seconds": 1999.0}, None),
        (
            {"cost_usd": 2, "usd_per_device_hour": 3.6},
            {"device_seconds": 2000.0},
            "budgets.cost_usd: 2.00 of 2 are used",
        ),
        (
            {"cost_usd": 2, "usd_per_device_hour": 3.6},
            {"device_seconds": 1000.0, "model_cost_usd": 1.0},
            "budgets.cost_usd: 2.00 of 2 are used",
        ),
        ({"cost_usd": 2}, {"device_seconds": 1e9, "model_cost_usd": 5.0}, None),
        ({"tokens": 1000}, {"tokens": 1000}, None),
        ({}, {"n_trials": 6}, None),
    ],
)
def test_a_limit_stops_the_trials_that_use_it(budgets: dict[str, Any], used: dict[str, Any], said: str | None) -> None:
    """Tokens and an unpriced cost stop the model alone; the number of trials ends the search, which is confirmed."""
    assert spent(a_task(budgets={"trials": 6, **budgets}), a_spend(**used)) == said


@pytest.mark.parametrize(
    ("budgets", "used", "tokens", "more_usd", "said"),
    [
        ({}, {}, 10**9, 1e9, None),
        ({"tokens": 1000}, {"tokens": 600}, 400, 0.0, None),
        (
            {"tokens": 1000},
            {"tokens": 600},
            401,
            0.0,
            "budgets.tokens: 600 of 1000 are used, and this call may need 401 more",
        ),
        ({"tokens": 1000}, {"tokens": 1000}, 0, 0.0, "budgets.tokens: 1000 of 1000 are used"),
        ({"cost_usd": 1}, {"model_cost_usd": 0.75}, 10, 0.25, None),
        (
            {"cost_usd": 1},
            {"model_cost_usd": 0.75},
            10,
            0.5,
            "budgets.cost_usd: 0.75 of 1 are used, and this call may need 0.5 more",
        ),
        (
            {"cost_usd": 1, "usd_per_device_hour": 3.6},
            {"device_seconds": 900.0},
            10,
            0.2,
            "budgets.cost_usd: 0.90 of 1 are used, and this call may need 0.2 more",
        ),
        ({"wall_minutes": 1}, {"wall_seconds": 60.0}, 1, 0.0, "budgets.wall_minutes: 1 of 1 are used"),
        ({"device_seconds": 9}, {"device_seconds": 9.0}, 1, 0.0, "budgets.device_seconds: 9 of 9 are used"),
        ({"trials": 6}, {"n_trials": 6}, 1, 0.0, None),
    ],
)
def test_a_call_that_may_overdraw_a_budget_is_refused_with_the_sum(
    budgets: dict[str, Any], used: dict[str, Any], tokens: int, more_usd: float, said: str | None
) -> None:
    task = a_task(budgets={"trials": 6, **budgets})
    assert refusal_of_a_call(task.budgets, a_spend(**used), tokens=tokens, more_usd=more_usd) == said


def test_all_five_are_told_limited_or_not() -> None:
    told = caps(a_task(budgets={"trials": 6, "tokens": 50}).budgets, a_spend(n_trials=2, tokens=7))
    assert [(cap.name, cap.used, cap.limit) for cap in told] == [
        ("trials", 2, 6.0),
        ("wall_minutes", 0.0, None),
        ("device_seconds", 0.0, None),
        ("tokens", 7, 50),
        ("cost_usd", 0.0, None),
    ]


def test_money_bounds_device_time_where_it_has_a_price() -> None:
    budgets = a_task(budgets={"trials": 6, "cost_usd": 1, "usd_per_device_hour": 3.6, "device_seconds": 5000}).budgets
    assert device_seconds_at_most(budgets) == pytest.approx(1000.0)
    assert device_seconds_left(budgets, a_spend(device_seconds=100.0, model_cost_usd=0.5)) == pytest.approx(400.0)
    assert device_seconds_at_most(a_task(budgets={"trials": 6, "cost_usd": 1}).budgets) is None


def test_money_is_kept_for_the_confirming_trials() -> None:
    task = a_task(budgets={"trials": 60, "cost_usd": 1, "usd_per_device_hour": 36}, seeds={"fresh": 4}, held_out=None)
    history = a_history(*(a_trial(task, n, {"x": n / 10, "kind": "a"}, 0.5) for n in range(1, 3)))
    # 100 device-seconds in all, 10 a trial, 8 confirming ones.
    assert reserve_reached(task, history, a_spend(device_seconds=19.0)) is None
    assert reserve_reached(task, history, a_spend(device_seconds=20.0)) == (
        "the 80 device-seconds left are needed for 8 confirming trials"
    )
