"""Reading a curve, and what a configuration is."""

from __future__ import annotations

import math

import pytest
from agent_worlds import a_task

from agent.planner.configuration import canonical, configuration_id, default_params, problems, size
from agent.planner.objective import gain, reaches, read_value
from agent.store.views import ParamValue
from agent.task import Direction, Objective


def an_objective(**changes: object) -> Objective:
    return Objective.model_validate({"metric": "m", "direction": "maximize"} | changes)


@pytest.mark.parametrize(
    ("curve", "read", "direction", "expected"),
    [
        ([0.1, 0.9, 0.5], "last", "maximize", 0.5),
        ([0.1, 0.9, 0.5], "best", "maximize", 0.9),
        ([0.1, 0.9, 0.5], "best", "minimize", 0.1),
        ([None, 0.9], "last", "maximize", 0.9),
        ([0.9, None], "best", "maximize", 0.9),
    ],
)
def test_the_value_that_counts(curve: list[float | None], read: str, direction: str, expected: float) -> None:
    assert read_value(curve, an_objective(read=read, direction=direction)).value == expected


@pytest.mark.parametrize("curve", [[], [0.5, None], [0.5, math.nan], [0.5, math.inf]])
def test_no_value_from_an_empty_curve_or_a_last_value_that_is_not_finite(curve: list[float | None]) -> None:
    reading = read_value(curve, an_objective())
    assert reading.value is None
    assert reading.note is not None


def test_best_of_only_nan_is_no_value() -> None:
    assert read_value([None, math.nan], an_objective(read="best")).value is None


def test_gain_turns_with_the_direction() -> None:
    assert gain(2.0, 1.0, Direction.MAXIMIZE) == 1.0
    assert gain(2.0, 1.0, Direction.MINIMIZE) == -1.0


def test_target_is_reached_on_the_better_side_alone() -> None:
    assert reaches(0.9, an_objective(target=0.9))
    assert not reaches(0.8, an_objective(target=0.9))
    assert reaches(0.8, an_objective(target=0.9, direction="minimize"))
    assert not reaches(0.8, an_objective())


def test_equal_points_have_one_name_whatever_order_or_number_type() -> None:
    task = a_task()
    first = canonical({"kind": "a", "x": 1}, task)
    second = canonical({"x": 1.0, "kind": "a"}, task)
    assert configuration_id(first) == configuration_id(second)
    assert list(first) == ["x", "kind"]


def test_different_points_have_different_names() -> None:
    task = a_task()
    names = {configuration_id(canonical({"x": x, "kind": k}, task)) for x in (0.1, 0.2) for k in ("a", "b")}
    assert len(names) == 4


@pytest.mark.parametrize(
    ("params", "part"),
    [
        ({"x": 0.5}, "kind has no value"),
        ({"x": 1.5, "kind": "a"}, "outside 0.0 to 1.0"),
        ({"x": math.nan, "kind": "a"}, "not a finite number"),
        ({"x": True, "kind": "a"}, "not a finite number"),
        ({"x": 0.5, "kind": "c"}, "not among"),
        ({"x": 0.5, "kind": "a", "z": 1}, "z is not in the space"),
    ],
)
def test_points_outside_the_space_are_named(params: dict[str, ParamValue], part: str) -> None:
    assert part in "; ".join(problems(params, a_task()))


def test_the_default_lies_in_the_space() -> None:
    assert problems(default_params(a_task()), a_task()) == []


def test_size_counts_finite_spaces_only() -> None:
    finite = {"n": {"type": "int", "low": 1, "high": 4, "default": 1}, "k": CHOICE}
    assert size(a_task(space=finite)) == 8
    assert size(a_task()) is None


CHOICE = {"type": "categorical", "choices": ["a", "b"], "default": "a"}
