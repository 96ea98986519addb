"""Curves for a page: by attempt, thinned so that a peak, a trough and a gap are still seen. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MOST_POINTS = 1000


@dataclass(frozen=True, slots=True)
class Logged:
    """One value as it was logged."""

    job_id: str
    attempt: int
    step: int
    value: float | None
    text: str | None = None
    """What it was where it was no finite number."""


Points = list[tuple[int, float | None]]


def has_steps(points: Sequence[Logged]) -> bool:
    """Whether the script said at which step it logged: one step for all of them says nothing."""
    return len(points) < 2 or len({point.step for point in points}) > 1


def by_attempt(points: Sequence[Logged], most: int = MOST_POINTS) -> list[tuple[str, int, Points]]:
    """Job, attempt, and what it logged, at most about `most` points together; attempts in the order of arrival.

    Where the script gave no steps, points are numbered from 0 over all attempts.
    """
    is_stepped = has_steps(points)
    pieces: dict[tuple[str, int], Points] = {}
    for number, point in enumerate(points):
        x = point.step if is_stepped else number
        pieces.setdefault((point.job_id, point.attempt), []).append((x, _finite(point.value)))
    return [
        (job_id, attempt, thinned(sorted(piece, key=lambda one: one[0]), max(4, most * len(piece) // len(points))))
        for (job_id, attempt), piece in pieces.items()
    ]


def thinned(points: Points, most: int) -> Points:
    """The first and the last, and of equal parts between them the least, the largest and the first that is no number.

    Args:
        points: steps never falling.
        most: at least 4.
    """
    if len(points) <= most:
        return points
    n_parts = max((most - 2) // 3, 1)
    inner = range(1, len(points) - 1)
    kept = {0, len(points) - 1}
    for part in range(n_parts):
        here = inner[part * len(inner) // n_parts : (part + 1) * len(inner) // n_parts]
        kept.update(_telling(points, here))
    return [points[index] for index in sorted(kept)]


def _telling(points: Points, here: range) -> Iterator[int]:
    gap = next((index for index in here if points[index][1] is None), None)
    if gap is not None:
        yield gap
    numbers = [(value, index) for index in here if (value := points[index][1]) is not None]
    if numbers:
        yield min(numbers)[1]
        yield max(numbers)[1]


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
