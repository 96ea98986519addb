"""How much each parameter of the space matters to the value, as far as the search trials tell. Pure.

A search is no designed experiment: proposers stay where values were good, so these are hints for a person and no
claims. The test of Kruskal and Wallis asks by ranks whether values differ between parts of a parameter's range, so
that one value far out says no more than one that is merely the worst.

Sources: Kruskal and Wallis, Use of ranks in one-criterion variance analysis, Journal of the American Statistical
Association 47, 1952; Kelley, An unbiased correlation ratio measure, PNAS 21, 1935 (epsilon squared).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc
from scipy.stats import rankdata

from agent.planner.configuration import is_finite_number
from agent.planner.geometry import Vector, place
from agent.store.views import ParamValue, TrialState, TrialView
from agent.task import CategoricalParameter, Direction, Parameter, Task

FEWEST = 8
"""Values below which nothing is said."""
SURE = 0.05
"""P-value at most for which a parameter is said to matter."""
_MOST_PARTS = 5
_IN_A_PART = 4
"""Values of one part at least, where the range of a number is cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A choice, or a part of a number's range with about as many trials as the others."""

    low: ParamValue
    high: ParamValue
    """Equal to `low` for a choice."""
    n: int
    median: float
    """Of the metric's values in it."""
    quartiles: tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    name: str
    share: float | None
    """Of the variance of the ranked values that it explains, 0 to 1, free of what chance explains on average; None:
    too few values."""
    p_value: float | None
    """Chance of at least so much, if it did not matter; parameters are not corrected for being several."""
    trend: float | None
    """Rank correlation of the number with goodness, -1 to 1: positive where larger is better. None: a choice."""
    best: Part | None
    parts: tuple[Part, ...]

    @property
    def words(self) -> str:
        if self.share is None or self.p_value is None or self.best is None:
            return "too few values to tell"
        if self.p_value > SURE:
            return "no effect to be seen"
        if self.trend is None:
            return f"best with {_said(self.best.low)}"
        if abs(self.trend) >= 0.5:
            return "larger is better" if self.trend > 0 else "smaller is better"
        return f"best from {_said(self.best.low)} to {_said(self.best.high)}"


def effects(task: Task, trials: Sequence[TrialView]) -> tuple[Effect, ...]:
    """One for each parameter, that which matters most first.

    Args:
        trials: of the search; those with a finite value on the session's base code count.
    """
    measured = [
        t
        for t in trials
        if t.state is TrialState.MEASURED and t.value is not None and math.isfinite(t.value) and t.facts.edited is None
    ]
    found = [_effect(name, parameter, measured, task) for name, parameter in task.space.items()]
    return tuple(sorted(found, key=lambda one: -1.0 if one.share is None else one.share, reverse=True))


def _effect(name: str, parameter: Parameter, measured: Sequence[TrialView], task: Task) -> Effect:
    known = [t for t in measured if _is_known(t.params.get(name), parameter)]
    if len(known) < FEWEST:
        return Effect(name=name, share=None, p_value=None, trend=None, best=None, parts=())
    values = np.array([t.value for t in known], dtype=float)
    sign = 1.0 if task.objective.direction is Direction.MAXIMIZE else -1.0
    ranks = np.asarray(rankdata(sign * values), dtype=float)
    places = np.array([place(t.params[name], parameter) for t in known])
    is_choice = isinstance(parameter, CategoricalParameter)
    groups = _choices(places) if is_choice else _cuts(places)
    parts = [_part(group, known, name, values, places) for group in groups]
    best = max(range(len(groups)), key=lambda at: float(np.mean(ranks[groups[at]])))
    share, p_value = _kruskal_wallis(ranks, groups)
    return Effect(
        name=name,
        share=share,
        p_value=p_value,
        trend=None if is_choice else _correlation(np.asarray(rankdata(places), dtype=float), ranks),
        best=parts[best],
        parts=tuple(parts),
    )


def _is_known(value: ParamValue, parameter: Parameter) -> bool:
    if isinstance(parameter, CategoricalParameter):
        return any(c == value and isinstance(c, bool) == isinstance(value, bool) for c in parameter.choices)
    if not is_finite_number(value) or not isinstance(value, int | float):
        return False
    return value > 0 or not parameter.log


def _choices(places: Vector) -> list[np.ndarray]:
    return [np.flatnonzero(places == one) for one in np.unique(places)]


def _cuts(places: Vector) -> list[np.ndarray]:
    """Parts of about equal number, cut only between different values."""
    order = np.argsort(places, kind="stable")
    n_parts = max(2, min(_MOST_PARTS, len(places) // _IN_A_PART))
    ends = [round(len(places) * at / n_parts) for at in range(1, n_parts + 1)]
    found, start = [], 0
    for end in ends:
        while 0 < end < len(places) and places[order[end]] == places[order[end - 1]]:
            end += 1
        if end > start:
            found.append(order[start:end])
            start = end
    return found


def _part(group: np.ndarray, known: Sequence[TrialView], name: str, values: Vector, places: Vector) -> Part:
    first, last = group[int(np.argmin(places[group]))], group[int(np.argmax(places[group]))]
    low, middle, high = np.quantile(values[group], [0.25, 0.5, 0.75])
    return Part(
        low=known[first].params[name],
        high=known[last].params[name],
        n=len(group),
        median=float(middle),
        quartiles=(float(low), float(high)),
    )


def _kruskal_wallis(ranks: Vector, groups: Sequence[np.ndarray]) -> tuple[float, float]:
    """Epsilon squared and the p-value; nothing is explained where there is one part alone, or one value."""
    n, k = len(ranks), len(groups)
    spread = float(np.sum((ranks - np.mean(ranks)) ** 2))
    if k < 2 or n <= k or spread == 0:
        return 0.0, 1.0
    between = sum(len(group) * float(np.mean(ranks[group]) - np.mean(ranks)) ** 2 for group in groups)
    h = (n - 1) * between / spread
    return min(max((h - k + 1) / (n - k), 0.0), 1.0), float(chdtrc(k - 1, h))


def _correlation(one: Vector, other: Vector) -> float:
    if float(np.std(one)) == 0 or float(np.std(other)) == 0:
        return 0.0
    return float(np.corrcoef(one, other)[0, 1])


def _said(value: ParamValue) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
