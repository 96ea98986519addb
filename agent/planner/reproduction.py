"""A trial that was run again, held against its record. Pure."""

from __future__ import annotations

import math
import statistics as plain
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from scipy.special import stdtrit

_CONFIDENCE = 0.99
_ROUNDING = 1e-9
"""Relative; less than this is the same number, printed and read again."""


class Reproduced(StrEnum):
    EQUAL = "equal"
    """The same number."""
    WITHIN_NOISE = "within_noise"
    """Another number, as near as replicates of this configuration are to each other, or as was tolerated."""
    DIFFERENT = "different"
    NO_VALUE = "no_value"
    """The new run gave none, or the record has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction:
    outcome: Reproduced
    recorded: float | None
    again: float | None
    tolerance: float | None
    """Largest distance that was let pass; None: only the same number would have."""
    reason: str

    @property
    def is_held(self) -> bool:
        return self.outcome in (Reproduced.EQUAL, Reproduced.WITHIN_NOISE)


def held_against_record(
    recorded: float | None, again: float | None, replicates: Sequence[float], *, tolerance: float | None = None
) -> Reproduction:
    """Judge a second value against the recorded one.

    `replicates`: values of the same configuration with other seeds; they say how far two runs are apart by chance.
    `tolerance`, in the metric's units, takes the place of that noise.
    """
    if recorded is None or again is None:
        missing = "the record has no value" if recorded is None else "the new run gave no value"
        return Reproduction(
            outcome=Reproduced.NO_VALUE, recorded=recorded, again=again, tolerance=tolerance, reason=missing
        )
    allowed = _noise(replicates) if tolerance is None else tolerance
    apart = abs(again - recorded)
    if apart <= _ROUNDING * max(abs(recorded), abs(again)):
        outcome, reason = Reproduced.EQUAL, f"{again:.6g} again"
    elif allowed is None:
        outcome = Reproduced.DIFFERENT
        reason = f"{again:.6g} instead of {recorded:.6g}; there are no replicates that would tell the noise"
    elif apart <= allowed:
        outcome = Reproduced.WITHIN_NOISE
        reason = f"{again:.6g} instead of {recorded:.6g}: {apart:.3g} apart, up to {allowed:.3g} is chance"
    else:
        outcome = Reproduced.DIFFERENT
        reason = f"{again:.6g} instead of {recorded:.6g}: {apart:.3g} apart, only up to {allowed:.3g} would be chance"
    return Reproduction(outcome=outcome, recorded=recorded, again=again, tolerance=allowed, reason=reason)


def _noise(replicates: Sequence[float]) -> float | None:
    """How far apart two runs are by chance: 99 % of the distance of two draws, from the spread of the replicates."""
    values = [value for value in replicates if math.isfinite(value)]
    if len(values) < 3:
        return None
    return float(stdtrit(len(values) - 1, 0.5 + _CONFIDENCE / 2)) * plain.stdev(values) * math.sqrt(2)
