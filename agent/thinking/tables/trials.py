"""Tables of trials: the best, the newest, those that run, those near a place, and curves. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

import numpy as np

from agent.planner.curve import Point
from agent.planner.geometry import Geometry
from agent.planner.history import History
from agent.planner.ranking import ranking
from agent.planner.standings import means_so_far, values_so_far
from agent.planner.statistics import mean_interval
from agent.store.views import ParamValue, TrialView
from agent.task import Task

from .table import Table, more, number, shown

_PARAMS_SHOWN = 12
"""Parameters of one trial that a row names; of a larger space those that differ from the default."""
_NAME_CHARACTERS = 20


def best(task: Task, history: History, n: int) -> Table:
    """The best standing configurations, with what is known of their noise."""
    ranks = ranking(task, history).standings
    first = {trial.configuration: trial for trial in reversed(history.search)}
    values = values_so_far(task, history, [s.configuration for s in ranks[:n]])
    rows = []
    for place, one in enumerate(ranks[:n], start=1):
        trial, own = first[one.configuration], values[one.configuration]
        interval = mean_interval(own)
        spread = "one value" if interval is None else f"{interval.low:.5g} to {interval.high:.5g} ({len(own)} seeds)"
        mean = sum(own) / len(own)
        rows.append((str(place), trial.trial_id, number(mean), spread, what_text(trial, task), _by(trial)))
    note = more(len(means_so_far(task, history)), len(rows), "measured configurations")
    columns = ("place", "trial", task.objective.metric, "95 % interval", "parameters", "by")
    return Table(name="best trials", columns=columns, rows=tuple(rows), note=note)


def recent(task: Task, history: History, n: int) -> Table:
    """The newest trials of the search that have ended, newest last."""
    ended = [trial for trial in history.search if trial.is_ended]
    rows = tuple(
        (t.trial_id, number(t.value) if t.value is not None else "no value", what_text(t, task), _by(t))
        for t in ended[len(ended) - min(n, len(ended)) :]
    )
    columns = ("trial", task.objective.metric, "parameters", "by")
    return Table(name="newest trials", columns=columns, rows=rows, note=more(len(ended), len(rows), "ended trials"))


def running(task: Task, history: History, n: int) -> Table:
    """What is under way or waits, the newest first: nobody needs to suggest it again."""
    open_ones = [trial for trial in reversed(history.search) if not trial.is_ended]
    rows = tuple((t.trial_id, "runs" if t.is_in_flight else "waits", what_text(t, task), _by(t)) for t in open_ones[:n])
    columns = ("trial", "state", "parameters", "by")
    return Table(name="under way", columns=columns, rows=rows, note=more(len(open_ones), len(rows), "trials"))


def near(task: Task, history: History, params: Mapping[str, ParamValue], n: int) -> Table:
    """The trials of the search nearest to a configuration, by the parameter that differs most."""
    geometry = Geometry(task)
    trials = history.search
    if not trials or not task.space:
        return Table(name="tried near", columns=(), rows=())
    places = np.array([geometry.places(trial.params) for trial in trials])
    apart = geometry.differences(geometry.places(params)[None, :], places)[0].max(axis=1)
    order = np.argsort(apart, kind="stable")[:n]
    rows = tuple(
        (trials[i].trial_id, f"{apart[i]:.2f}", _outcome(trials[i]), what_text(trials[i], task)) for i in order
    )
    columns = ("trial", "distance", task.objective.metric, "parameters")
    note = "distance: of the parameter that differs most, in parts of its range"
    return Table(name="tried near", columns=columns, rows=rows, note=note)


def curves(task: Task, known: Mapping[str, Sequence[Point]], n_points: int) -> Table:
    """A few points of each curve, by trial, the last one always."""
    rows = []
    for trial_id, points in known.items():
        finite = [(point.step, point.value) for point in points if point.is_finite]
        if not finite:
            continue
        picked = sorted({round(i * (len(finite) - 1) / max(n_points - 1, 1)) for i in range(n_points)})
        rows.append((trial_id, "  ".join(f"{finite[i][0]}: {number(finite[i][1])}" for i in picked)))
    columns = ("trial", f"step: {task.objective.metric}")
    return Table(name="curves", columns=columns, rows=tuple(rows))


def what_text(trial: TrialView, task: Task) -> str:
    """The parameters of a trial, and that it runs other code, where it does."""
    text = params_text(trial.params, task) if task.space else ""
    code = trial.facts.edited
    if task.code is None:
        return text
    return f"{text} (base code)".strip() if code is None else f"{text} (edited code, {code.tree[:8]})".strip()


def params_text(params: Mapping[str, ParamValue], task: Task) -> str:
    """`lr=0.001 batch=64`; of many parameters those that are not at their default."""
    named = dict(params)
    if len(named) > _PARAMS_SHOWN:
        named = {k: v for k, v in named.items() if k in task.space and v != task.space[k].default}
    left = more(len(named), min(len(named), _PARAMS_SHOWN), "changed parameters")
    text = " ".join(f"{name}={shown(value)}" for name, value in list(named.items())[:_PARAMS_SHOWN])
    rest = "" if len(params) <= _PARAMS_SHOWN else " (the rest at its default)" if not left else f" ({left})"
    return (text or "all at their default") + rest


def _outcome(trial: TrialView) -> str:
    if not trial.is_ended:
        return "under way"
    return "no value" if trial.value is None or not math.isfinite(trial.value) else number(trial.value)


def _by(trial: TrialView) -> str:
    """Who suggested it: people choose such names, so only letters of a name are kept."""
    return re.sub(r"[^\w.-]", "", trial.suggested_by)[:_NAME_CHARACTERS]
