"""The statistics kernel against values worked out by hand and by scipy, and its coverage by simulation."""

from __future__ import annotations

import math
import random

import pytest
from scipy import stats

from agent.planner.statistics import (
    Comparison,
    Verdict,
    compare,
    mean_interval,
    paired_interval,
    verdict_on_improvement,
)
from agent.store.views import Interval
from agent.task import Direction


def an_interval(low: float, high: float, n: int = 5) -> Interval:
    return Interval(estimate=(low + high) / 2, low=low, high=high, confidence=0.95, n=n)


def test_mean_interval_of_one_to_five_by_hand() -> None:
    # mean 3, spread sqrt(2.5), t(4, .975) = 2.776445: half width 1.963243
    found = mean_interval([1.0, 2.0, 3.0, 4.0, 5.0])
    assert found is not None
    assert found.estimate == 3.0
    assert found.low == pytest.approx(1.036757, abs=1e-6)
    assert found.high == pytest.approx(4.963243, abs=1e-6)
    assert found.n == 5


def test_paired_interval_equals_scipys_paired_test() -> None:
    best, default = [0.91, 0.93, 0.92, 0.95], [0.90, 0.90, 0.91, 0.93]
    expected = stats.ttest_rel(best, default).confidence_interval(0.95)
    found = paired_interval(list(zip(best, default, strict=True)))
    assert found is not None
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-12)


@pytest.mark.parametrize("values", [[], [1.0], [1.0, math.nan], [1.0, math.inf]])
def test_no_interval_from_too_few_or_not_finite_values(values: list[float]) -> None:
    assert mean_interval(values) is None


def test_interval_of_equal_values_has_no_width() -> None:
    found = mean_interval([0.5, 0.5, 0.5])
    assert found is not None
    assert (found.low, found.high) == (0.5, 0.5)


def test_equal_differences_of_sides_that_vary_are_not_certainty() -> None:
    # spreads .0014142 each side, together .002; t(1, .975) = 12.7062; half width 12.7062 * .002 / sqrt(2) = .0179693
    found = paired_interval([(0.967, 0.910), (0.969, 0.912)])
    assert found is not None
    assert found.estimate == pytest.approx(0.057)
    assert found.high - found.estimate == pytest.approx(0.0179693, abs=1e-6)


def test_equal_differences_of_sides_that_do_not_vary_are_exact() -> None:
    found = paired_interval([(0.9, 0.8), (0.9, 0.8), (0.9, 0.8)])
    assert found is not None
    assert (found.low, found.high) == pytest.approx((0.1, 0.1))


def test_interval_covers_the_truth_as_often_as_it_says() -> None:
    source = random.Random(7)
    n_sessions, n_covered = 2000, 0
    for _ in range(n_sessions):
        found = paired_interval([(source.gauss(0.3, 1.0), source.gauss(0.0, 1.0)) for _ in range(5)])
        assert found is not None
        n_covered += found.low <= 0.3 <= found.high
    assert stats.binomtest(n_covered, n_sessions, 0.95).pvalue > 0.001


def test_a_default_that_equals_the_best_is_called_beaten_in_at_most_one_of_forty() -> None:
    source = random.Random(11)
    n_sessions, n_better = 2000, 0
    for _ in range(n_sessions):
        difference = paired_interval([(source.gauss(0, 1), source.gauss(0, 1)) for _ in range(5)])
        n_better += compare(difference, direction=Direction.MAXIMIZE, n_needed=3) is Comparison.BETTER
    assert stats.binomtest(n_better, n_sessions, 0.025, alternative="greater").pvalue > 0.001
    assert n_better > 10


@pytest.mark.parametrize(
    ("low", "high", "direction", "expected"),
    [
        (0.1, 0.2, Direction.MAXIMIZE, Comparison.BETTER),
        (0.1, 0.2, Direction.MINIMIZE, Comparison.WORSE),
        (-0.2, -0.1, Direction.MAXIMIZE, Comparison.WORSE),
        (-0.2, -0.1, Direction.MINIMIZE, Comparison.BETTER),
        (-0.1, 0.1, Direction.MAXIMIZE, Comparison.INDISTINGUISHABLE),
        (-0.1, 0.1, Direction.MINIMIZE, Comparison.INDISTINGUISHABLE),
        (0.0, 0.1, Direction.MAXIMIZE, Comparison.INDISTINGUISHABLE),
    ],
)
def test_direction_alone_says_which_side_is_better(
    low: float, high: float, direction: Direction, expected: Comparison
) -> None:
    assert compare(an_interval(low, high), direction=direction, n_needed=2) is expected


def test_too_few_pairs_are_invalid_however_clear() -> None:
    assert compare(an_interval(1.0, 2.0, n=2), direction=Direction.MAXIMIZE, n_needed=3) is Comparison.INVALID
    assert compare(None, direction=Direction.MAXIMIZE, n_needed=2) is Comparison.INVALID


def test_only_better_supports_and_only_worse_refutes() -> None:
    assert {c: verdict_on_improvement(c) for c in Comparison} == {
        Comparison.BETTER: Verdict.SUPPORTED,
        Comparison.WORSE: Verdict.REFUTED,
        Comparison.INDISTINGUISHABLE: Verdict.INCONCLUSIVE,
        Comparison.INVALID: Verdict.INCONCLUSIVE,
    }
