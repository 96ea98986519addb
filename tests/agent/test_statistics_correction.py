"""The winner's curse and its correction, by simulation of whole searches."""

from __future__ import annotations

import math

import numpy as np
import pytest

from agent.planner.statistics import Basis, corrected, pooled_noise, standing
from agent.task import Direction

UP, DOWN = Direction.MAXIMIZE, Direction.MINIMIZE
SPREADS = {
    "all the same": lambda source, n: np.zeros(n),
    "spread like the noise": lambda source, n: source.normal(size=n),
    "spread three times the noise": lambda source, n: 3 * source.normal(size=n),
    "half of them awful": lambda source, n: np.where(source.random(n) < 0.5, 0.5 * source.normal(size=n), -60.0),
    "tails without a mean": lambda source, n: -np.abs(source.standard_cauchy(size=n)),
    "one far better": lambda source, n: np.where(np.arange(n) == 3, 5.0, 0.0),
}


@pytest.mark.parametrize("kind", SPREADS)
def test_the_corrected_best_is_neither_too_good_nor_surer_than_it_may_be(kind: str) -> None:
    source = np.random.default_rng(41)
    naive, shrunk, n_held, n_searches = [], [], 0, 150
    for _ in range(n_searches):
        truth = SPREADS[kind](source, 50)
        first = truth + source.normal(size=50)
        values = {f"c{i}": [float(first[i])] for i in range(50)}
        for i in {*np.argsort(-first)[:3].tolist(), 7}:
            values[f"c{i}"] += (truth[i] + source.normal(size=2)).tolist()
        chosen = standing(values, UP)[0].configuration
        found = corrected(values, chosen, direction=UP)
        assert found is not None
        assert found.basis is Basis.SHRUNK
        actual = float(truth[int(chosen[1:])])
        naive.append(found.naive - actual)
        shrunk.append(found.interval.estimate - actual)
        n_held += found.interval.low <= actual <= found.interval.high
    assert abs(float(np.mean(shrunk))) <= 0.4
    assert abs(float(np.mean(shrunk))) <= max(0.4 * float(np.mean(naive)), 0.25)
    assert n_held / n_searches >= 0.9


def test_fresh_seeds_alone_count_where_they_exist() -> None:
    values = {"a": [9.0, 9.5], "b": [1.0], "c": [2.0], "d": [1.5]}
    found = corrected(values, "a", direction=UP, fresh=[1.0, 2.0, 3.0])
    assert found is not None
    assert (found.basis, found.interval.estimate, found.interval.n) == (Basis.FRESH, 2.0, 3)
    assert found.naive == pytest.approx(4.9)


def test_without_any_repeat_the_value_is_given_as_measured_and_called_so() -> None:
    found = corrected({"a": [3.0], "b": [1.0]}, "a", direction=UP)
    assert found is not None
    assert (found.basis, found.noise, found.interval.estimate) == (Basis.AS_MEASURED, None, 3.0)
    assert corrected({"b": [1.0]}, "a", direction=UP) is None


def test_the_direction_mirrors_the_correction() -> None:
    source = np.random.default_rng(43)
    values = {f"c{i}": source.normal(size=1 + i % 3).tolist() for i in range(30)}
    mirrored = {name: [-x for x in v] for name, v in values.items()}
    up, down = standing(values, UP), standing(mirrored, DOWN)
    assert [s.configuration for s in up] == [s.configuration for s in down]
    assert [s.mean for s in up] == pytest.approx([-s.mean for s in down])


def test_a_lucky_single_value_ranks_behind_a_repeated_good_one() -> None:
    source = np.random.default_rng(47)
    values = {f"c{i}": [x] for i, x in enumerate(source.normal(0, 0.3, size=20).tolist())}
    values |= {"lucky": [1.5], "proven": [1.2, 1.3, 1.1, 2.0, 0.4, 0.6, 1.8, 1.2]}
    assert standing(values, UP)[0].configuration == "proven"


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_values_that_are_no_numbers_never_rank(bad: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        standing({"a": [bad], "b": [1.0]}, UP)


def test_noise_is_that_of_the_good_configurations() -> None:
    values = {"bad": [-900.0, -100.0], "good": [1.0, 1.2], "better": [1.1, 1.3], "best": [1.4, 1.6], "one": [1.0]}
    assert pooled_noise(values, UP) == pytest.approx(math.sqrt(0.02))
