"""One measured figure and how it is printed. A figure is an id, a value with its spread, and a control beside it."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    id: str
    value: float
    unit: str
    control: float | None
    """The peer or floor measured beside it in the same run; None where there is none."""
    n: int
    spread: tuple[float, float]
    note: str

    def line(self) -> str:
        record = {
            "figure": self.id,
            "value": round(self.value, 4),
            "unit": self.unit,
            "control": None if self.control is None else round(self.control, 4),
            "n": self.n,
            "spread": [round(x, 4) for x in self.spread],
            "note": self.note,
        }
        return json.dumps(record)


def median_of(samples: Sequence[float]) -> float:
    return statistics.median(samples)


def quartiles(samples: Sequence[float]) -> tuple[float, float]:
    """First and third quartile; the samples themselves when there are fewer than four."""
    if len(samples) < 4:
        return min(samples), max(samples)
    q = statistics.quantiles(samples, n=4)
    return q[0], q[2]


Measure = Callable[[bool], Figure]
"""Takes `quick`, returns the figure; raises `Unavailable` when it can not be measured here."""


class Unavailable(Exception):
    """This figure can not be measured on this machine; the text says what is missing."""
