"""Early stops: a model may name a trial, its curve decides."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from agent.planner.curve import Point
from agent.planner.early_stop import FEWEST, behind
from agent.task import Direction


def a_curve(*values: float | None) -> list[Point]:
    return [Point(value=value, step=step, attempt=1) for step, value in enumerate(values)]


def rising(n: int, upto: float, steps: int = 10) -> list[Sequence[Point]]:
    return [a_curve(*(upto * (step + 1) / steps + i / 1000 for step in range(steps))) for i in range(n)]


def test_a_curve_below_three_quarters_of_the_others_is_behind() -> None:
    found = behind(a_curve(0.1, 0.1, 0.1, 0.1), rising(8, 0.9), Direction.MAXIMIZE)
    assert found.is_behind
    assert found.reason == "at step 3 its best is 0.1, and 8 of 8 measured trials were better by then"


def test_direction_decides_what_is_behind() -> None:
    flat = [a_curve(*([0.9] * 10)) for _ in range(8)]
    assert not behind(a_curve(0.1, 0.1, 0.1, 0.1), flat, Direction.MINIMIZE).is_behind
    assert behind(a_curve(0.1, 0.1, 0.1, 0.1), flat, Direction.MAXIMIZE).is_behind
    falling = [a_curve(*(1.0 - step / 10 for step in range(10))) for _ in range(6)]
    assert behind(a_curve(1.0, 1.0, 1.0, 1.0), falling, Direction.MINIMIZE).is_behind


def test_a_curve_in_the_upper_quarter_is_not_behind_whatever_is_said_of_it() -> None:
    ended = [a_curve(*([i / 10] * 10)) for i in range(8)]
    assert not behind(a_curve(0.55, 0.55, 0.55), ended, Direction.MAXIMIZE).is_behind
    assert behind(a_curve(0.05, 0.05, 0.05), ended, Direction.MAXIMIZE).is_behind


@pytest.mark.parametrize(
    ("curve", "n", "words"),
    [
        ((), 8, "no value yet"),
        ((None, None), 8, "no value yet"),
        ((0.1, 0.1, 0.1), FEWEST - 1, "only 4 of the 5 curves"),
        ((0.1,), 8, "too early to say"),
    ],
)
def test_where_too_little_is_known_nothing_is_ended(curve: Sequence[float | None], n: int, words: str) -> None:
    found = behind(a_curve(*curve), rising(n, 0.9), Direction.MAXIMIZE)
    assert not found.is_behind
    assert words in found.reason


def test_curves_that_never_came_so_far_do_not_count() -> None:
    short = [a_curve(0.9, 0.9) for _ in range(9)]
    assert not behind(a_curve(0.1, 0.1, 0.1, 0.1), short, Direction.MAXIMIZE).is_behind
