"""Who goes on at a milestone, and what a curve was worth there."""

from __future__ import annotations

import math

import pytest

from agent.planner.curve import Point
from agent.planner.halving import Stop, milestones, reached, stop
from agent.task import Direction, Objective
from agent.task_fidelity import Halving

_MAX = Objective(metric="accuracy", direction=Direction.MAXIMIZE)


def _curve(*values: float | None, steps: list[int] | None = None) -> list[Point]:
    return [
        Point(value=value, step=step, attempt=1)
        for step, value in zip(steps or range(1, len(values) + 1), values, strict=True)
    ]


def test_milestones_lie_apart_by_the_factor_and_below_the_end() -> None:
    assert list(milestones(Halving(factor=3, first=1), 27)) == [1, 3, 9]
    assert list(milestones(Halving(factor=2, first=5), 5)) == []


def test_a_milestone_between_two_points_is_passed_at_the_later_one() -> None:
    assert reached(_curve(0.1, 0.5, steps=[2, 4]), _MAX, [1, 3, 9]) == {1: 0.1, 3: 0.5}


def test_what_is_no_number_at_a_milestone_is_worst_of_all() -> None:
    assert reached(_curve(0.4, None), _MAX, [1, 2]) == {1: 0.4, 2: -math.inf}


def test_where_the_best_value_counts_a_dip_costs_nothing() -> None:
    best = _MAX.model_copy(update={"read": "best"})
    assert reached(_curve(0.4, 0.2, 0.3), best, [1, 3]) == {1: 0.4, 3: 0.4}


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ([0.9], None),
        ([0.9, 0.8], Stop(step=1, rank=3, n=3)),
        ([0.9, 0.1], Stop(step=1, rank=2, n=3)),
        ([0.5, 0.1], None),
    ],
    ids=["too few", "last", "second of three", "equal to the best"],
)
def test_one_in_factor_goes_on(others: list[float], expected: Stop | None) -> None:
    assert stop({1: 0.5}, [{1: value} for value in others], Halving(factor=3), Direction.MAXIMIZE) == expected


def test_less_is_better_where_it_is_minimized() -> None:
    assert stop({1: 0.5}, [{1: 0.9}, {1: 0.8}], Halving(factor=3), Direction.MINIMIZE) is None
