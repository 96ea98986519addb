"""What each parameter did so far: rank correlation with the goodness, and means over thirds or choices. Pure.

Source: Spearman, The proof and measurement of association between two things, American Journal of Psychology 15, 1904.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from agent.planner.geometry import Geometry
from agent.planner.history import History
from agent.planner.standings import means_so_far
from agent.store.views import TrialState
from agent.task import CategoricalParameter, Direction, Parameter, Task

from .table import Table, more, number, shown

FEWEST = 5
"""Measured configurations from which anything is said."""
FEW = 20
"""Below, a correlation is mostly chance: the table says so."""
_CHOICES_SHOWN = 6

Column = npt.NDArray[np.float64]


def effects(task: Task, history: History, n: int) -> Table:
    """The parameters with the strongest effects first, at most `n` of them; on the base code, where trials edit it."""
    history = history.of_base()
    means = means_so_far(task, history)
    trials = [t for t in history.search if t.state is TrialState.MEASURED and t.configuration in means]
    columns = ("parameter", "rank correlation with better", f"mean {task.objective.metric} (trials)")
    if len(trials) < FEWEST:
        return Table(name="effects", columns=columns, rows=())
    geometry = Geometry(task)
    values = np.array([means[trial.configuration] for trial in trials])
    better = values if task.objective.direction is Direction.MAXIMIZE else -values
    places = np.array([geometry.places(trial.params) for trial in trials])
    rows = []
    for at, (name, parameter) in enumerate(task.space.items()):
        strength, correlation, groups = _of(parameter, places[:, at], values, better)
        rows.append((strength, name, correlation, groups))
    rows.sort(key=lambda row: -row[0])
    said = f"{len(trials)} measured configurations, chosen and not drawn at random"
    if len(trials) < FEW:
        said += "; so few say little"
    left = more(len(rows), min(len(rows), n), "parameters")
    shown_rows = tuple((name, correlation, groups) for _, name, correlation, groups in rows[:n])
    return Table(name="effects", columns=columns, rows=shown_rows, note=f"{said}; {left}" if left else said)


def _of(parameter: Parameter, at: Column, values: Column, better: Column) -> tuple[float, str, str]:
    """Strength from 0 to 1, correlation in words, means by group."""
    if isinstance(parameter, CategoricalParameter):
        groups = [(shown(choice), values[at == i]) for i, choice in enumerate(parameter.choices)]
        seen = [(name, group) for name, group in groups if len(group)]
        between = sum(len(g) * (g.mean() - values.mean()) ** 2 for _, g in seen)
        total = float(((values - values.mean()) ** 2).sum())
        strength = float(np.sqrt(between / total)) if total > 0 else 0.0
        return strength, "-", _groups(seen[:_CHOICES_SHOWN])
    correlation = rank_correlation(at, better)
    thirds = np.minimum((at * 3).astype(int), 2)
    groups = [(name, values[thirds == i]) for i, name in enumerate(("low", "middle", "high"))]
    return abs(correlation or 0.0), "none" if correlation is None else f"{correlation:+.2f}", _groups(groups)


def _groups(groups: list[tuple[str, Column]]) -> str:
    return ", ".join(f"{name} {number(float(g.mean()))} ({len(g)})" for name, g in groups if len(g))


def rank_correlation(first: Column, second: Column) -> float | None:
    """Spearman's, ties at their mean rank; None: one of the two does not vary."""
    a, b = _ranks(first), _ranks(second)
    a, b = a - a.mean(), b - b.mean()
    scale = float(np.sqrt((a * a).sum() * (b * b).sum()))
    return float((a * b).sum()) / scale if scale > 0 else None


def _ranks(values: Column) -> Column:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[inverse], dtype=np.float64)
