"""Trap: a value that is no number. NaN, infinite, missing and impossible values are invalid, never best.

The naive rules: `max` over a list that begins with NaN returns NaN; a sort leaves it where it is; an infinite or
impossible value beats everything; a missing one read as 0 beats every negative score.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
from trap_worlds import (
    NOISE,
    all_finite,
    ended,
    measured,
    noise,
    number,
    result_of,
    search_values,
    trap_task,
    trials_of,
    x_of,
)

from agent.store.views import Purpose, TrialState
from runtime_client.fake import FakeOutcome
from runtime_client.models import JobSpec

EDGE = 0.55
"""Right of it every trial is broken; the true best on the sound side lies at 0.45."""


def sound(x: float, seed: int) -> float:
    return -2.0 - 4 * (x - 0.45) ** 2 + 0.2 * NOISE * noise(x, seed)


def broken_above(curve: list[float]) -> Callable[[JobSpec], FakeOutcome]:
    """`curve` is what a broken trial logs; it may be empty."""

    def script(spec: JobSpec) -> FakeOutcome:
        x = x_of(spec)
        if x <= EDGE:
            return measured(spec, sound(x, spec.seed or 0))
        return FakeOutcome(curves={"score": curve} if curve else {"other": [1.0]}, duration_s=10.0)

    return script


BROKEN = {
    "nan": [-3.0, math.nan, math.nan],
    "infinite": [-3.0, -2.0, math.inf],
    "minus_infinite": [-3.0, -2.0, -math.inf],
    "missing": [],
}


@pytest.mark.parametrize(
    ("kind", "direction", "read"),
    [
        ("nan", "maximize", "last"),
        ("nan", "minimize", "best"),
        ("infinite", "maximize", "last"),
        ("infinite", "maximize", "best"),
        ("minus_infinite", "minimize", "last"),
        ("missing", "minimize", "last"),
    ],
)
def test_no_broken_value_is_ever_best(kind: str, direction: str, read: str, tmp_path: Path) -> None:
    sign = 1 if direction == "maximize" else -1
    curve = [sign * value for value in BROKEN[kind]]

    def script(spec: JobSpec) -> FakeOutcome:
        outcome = broken_above(curve)(spec)
        if x_of(spec) > EDGE or sign == 1:
            return outcome
        return measured(spec, -outcome.curves["score"][-1])

    valid = {"low": -1000.0, "high": 0.0} if sign == 1 else {"low": 0.0, "high": 1000.0}
    objective = {"metric": "score", "direction": direction, "read": read, "valid": valid}
    world = ended(
        tmp_path, script, task=trap_task(objective=objective, budgets={"trials": 7}, seeds={"fresh": 3, "max_pairs": 6})
    )
    found = result_of(world)
    assert number(found.best["x"]) <= EDGE or (read == "best" and kind != "missing")
    assert all_finite(world)
    for trial in trials_of(world):
        if number(trial.params["x"]) > EDGE and (read == "last" or kind == "missing"):
            assert trial.state is TrialState.INVALID
            assert trial.value is None
            assert trial.note, "says why"
        elif trial.value is not None:
            assert valid["low"] <= trial.value <= valid["high"]
    assert any(number(t.params["x"]) > EDGE for t in trials_of(world, Purpose.SEARCH)), "the trap was walked over"


def test_the_naive_rules_fall_in() -> None:
    values = [math.nan, -2.1, -2.0]
    assert math.isnan(max(values))
    assert max([-2.1, math.inf, -2.0]) == math.inf
    assert max(value or 0.0 for value in [-2.1, None, -2.0]) == 0.0


def test_a_broken_default_is_not_beaten_for_being_broken(tmp_path: Path) -> None:
    """The default gives NaN: nothing can be said to beat it, and the session says so."""

    def script(spec: JobSpec) -> FakeOutcome:
        is_default = abs(x_of(spec) - 0.2) < 1e-9
        return measured(spec, math.nan if is_default else sound(x_of(spec), spec.seed or 0))

    found = result_of(ended(tmp_path, script))
    assert found.verdict == "inconclusive"
    assert found.comparison == "invalid"
    assert found.default_mean is None


def test_a_best_that_breaks_on_fresh_seeds_is_not_called_better(tmp_path: Path) -> None:
    """Fine on the search seed, NaN on every other: the pairs that remain are none."""

    def script(spec: JobSpec) -> FakeOutcome:
        is_default = abs(x_of(spec) - 0.2) < 1e-9
        has_value = is_default or spec.seed == 0
        return measured(spec, sound(x_of(spec), spec.seed or 0) if has_value else math.nan)

    world = ended(tmp_path, script)
    found, values = result_of(world), search_values(world)
    assert max(values.values()) > values[0.2], "the search value alone falls in"
    assert found.verdict != "supported"


def test_the_parabola_is_found_where_nothing_is_broken(tmp_path: Path) -> None:
    """The control: the same world without the trap has a gain, and it is found."""
    world = ended(tmp_path, lambda spec: measured(spec, sound(x_of(spec), spec.seed or 0)))
    assert result_of(world).verdict == "supported"
