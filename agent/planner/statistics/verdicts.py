"""What may be said of two configurations, and of a claim about them. The direction comes from the task alone."""

from __future__ import annotations

from enum import StrEnum

from agent.planner.objective import gain
from agent.store.views import Interval
from agent.task import Direction


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
