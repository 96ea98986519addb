"""Curves: what the attempts of a job logged, made one curve; whether its name was changed on the way. Pure."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_ALIKE = 0.6
"""Names that share less are two metrics, not two names of one (`difflib`'s ratio)."""
_N_POINTS = 2
"""So many points make a curve; one is a summary, logged at the end under a name of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One value of a metric."""

    value: float | None
    """None: not a finite number."""
    step: int
    attempt: int

    @property
    def is_finite(self) -> bool:
        return self.value is not None and math.isfinite(self.value)


def undisturbed(points: Sequence[Point]) -> list[Point]:
    """The curve as it would be without interruptions: what a later attempt did again counts as it was done last.

    So a job that is tried several times has one curve, not the best of several.

    Args:
        points: in the order of arrival.
    """
    kept: list[Point] = []
    attempt: int | None = None
    for point in points:
        if attempt is not None and point.attempt > attempt:
            kept = [old for old in kept if old.step < point.step]
        attempt = point.attempt if attempt is None else max(attempt, point.attempt)
        kept.append(point)
    return kept


def last_finite(points: Sequence[Point]) -> Point | None:
    """How far a curve went: evidence of a trial that did not end well, never its value."""
    return next((point for point in reversed(points) if point.is_finite), None)


def alike(metric: str, names: Sequence[str]) -> list[str]:
    """The names that may be another name of the metric, most alike first."""
    others = [name for name in names if name != metric]
    return difflib.get_close_matches(metric, others, n=4, cutoff=_ALIKE)


def renamed_to(metric: str, arrivals: Sequence[str], names: Sequence[str]) -> str | None:
    """Another name under which a metric's curve went on after it had ended; None: it did not.

    Args:
        arrivals: the metric of each point, in the order of arrival.
        names: who might be meant; see `alike`.
    """
    last: Mapping[str, int] = {name: at for at, name in enumerate(arrivals)}
    if metric not in last:
        return None
    for name in names:
        after = [at for at, found in enumerate(arrivals) if found == name]
        if len(after) >= _N_POINTS and after[0] > last[metric]:
            return name
    return None
