"""Intervals of a fixed number of values, looked at once: what is known when the number was planned before."""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy.special import stdtrit

from agent.store.views import Interval

CONFIDENCE = 0.95
_ROUNDING = 1e-9
"""Differences that vary less than this, in parts of the sides' own spread, are equal but for rounding."""


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


def difference_interval(differences: Sequence[float], *, confidence: float = CONFIDENCE) -> Interval | None:
    """t interval of the mean of paired differences of several configurations; None as `mean_interval`.

    Such sides vary more than their pairs, so they tell nothing of the noise where all differences are equal. All 0:
    the training repeats itself exactly, and the interval has no width. All equal otherwise: each is taken for rounded
    to a multiple of its own size, on both sides.
    """
    if mean_interval(differences) is None:
        return None
    spread, largest = _spread(differences), max(abs(x) for x in differences)
    if spread <= largest * _ROUNDING:
        spread = largest / math.sqrt(6)  # of the difference of two roundings
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
