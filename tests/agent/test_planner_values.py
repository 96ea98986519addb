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


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
@pytest.mark.parametrize("read", ["last", "best"])
@pytest.mark.parametrize(
    ("value", "is_valid"), [(0.0, True), (1.0, True), (0.5, True), (1.0001, False), (-0.1, False), (1e300, False)]
)
def test_a_value_outside_the_valid_range_is_no_value(value: float, is_valid: bool, read: str, direction: str) -> None:
    objective = an_objective(valid={"low": 0, "high": 1}, read=read, direction=direction)
    reading = read_value([value], objective)
    assert (reading.value is not None) is is_valid
    if not is_valid:
        assert reading.note == f"m = {value:.6g} lies outside objective.valid (0 to 1)"


def test_a_range_may_be_open_on_one_side() -> None:
    assert read_value([-5.0], an_objective(valid={"low": 0})).note == "m = -5 lies outside objective.valid (0 to any)"
    assert read_value([5.0], an_objective(valid={"low": 0})).value == 5.0


@pytest.mark.parametrize(("read", "expected"), [("best", 0.9), ("last", 0.4)])
def test_points_that_are_not_finite_are_left_out_with_a_note(read: str, expected: float) -> None:
    reading = read_value([0.9, None, math.inf, 0.4], an_objective(read=read))
    assert reading.value == expected
    assert reading.note == "2 of 4 values of 'm' are not finite numbers; they do not count"
