"""The statistics kernel: intervals, comparisons, verdicts. Pure; the direction comes from the task alone.

One look is planned: the best configuration of the search is fixed first, then it and the default run on the same
fresh seeds, then one interval is computed. So the fixed-sample t interval holds; the search values, which are biased
upwards by the choice of the best, are never part of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum

from scipy.special import stdtrit

from agent.planner.objective import gain
from agent.store.views import Interval
from agent.task import Direction

CONFIDENCE = 0.95
_ROUNDING = 1e-9
"""Differences that vary less than this, in parts of the sides' own spread, are equal but for rounding."""


class Comparison(StrEnum):
    BETTER = "better"
    WORSE = "worse"
    INDISTINGUISHABLE = "indistinguishable"
    INVALID = "invalid"
    """Too few valid values on either side."""


class Verdict(StrEnum):
    SUPPORTED = "supported"
    REFUTED = "refuted"
    INCONCLUSIVE = "inconclusive"


def mean_interval(values: Sequence[float], *, confidence: float = CONFIDENCE) -> Interval | None:
    """Two-sided t interval of a mean; None with fewer than two values or any that is not finite.

    Source: Student's t interval with n - 1 degrees of freedom.
    """
    n = len(values)
    if n < 2 or not all(math.isfinite(value) for value in values):
        return None
    return _t_interval(values, _spread(values), confidence)


def paired_interval(pairs: Sequence[tuple[float, float]], *, confidence: float = CONFIDENCE) -> Interval | None:
    """t interval of the mean of first minus second over pairs (same seed); None as `mean_interval`.

    A metric of coarse resolution (the accuracy on a few hundred examples) gives equal differences by chance now and
    then, and those would pass for certainty. Where both sides vary and their differences do not, the spread is that
    of the two sides as if they were not paired.
    """
    differences = [first - second for first, second in pairs]
    if mean_interval(differences) is None:
        return None
    spread = _spread(differences)
    sides = math.hypot(*(_spread(side) for side in zip(*pairs, strict=True)))
    if spread <= sides * _ROUNDING:
        spread = sides
    return _t_interval(differences, spread, confidence)


def _t_interval(values: Sequence[float], spread: float, confidence: float) -> Interval:
    n = len(values)
    mean = math.fsum(values) / n
    half = float(stdtrit(n - 1, 0.5 + confidence / 2)) * spread / math.sqrt(n)
    return Interval(estimate=mean, low=mean - half, high=mean + half, confidence=confidence, n=n)


def _spread(values: Sequence[float]) -> float:
    """Sample standard deviation."""
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


def compare(difference: Interval | None, *, direction: Direction, n_needed: int) -> Comparison:
    """What an interval of (candidate minus reference) says about the candidate."""
    if difference is None or difference.n < n_needed:
        return Comparison.INVALID
    ends = gain(difference.low, 0.0, direction), gain(difference.high, 0.0, direction)
    if min(ends) > 0:
        return Comparison.BETTER
    if max(ends) < 0:
        return Comparison.WORSE
    return Comparison.INDISTINGUISHABLE


def verdict_on_improvement(comparison: Comparison) -> Verdict:
    """The verdict on the claim that the candidate is better."""
    match comparison:
        case Comparison.BETTER:
            return Verdict.SUPPORTED
        case Comparison.WORSE:
            return Verdict.REFUTED
        case Comparison.INDISTINGUISHABLE | Comparison.INVALID:
            return Verdict.INCONCLUSIVE
