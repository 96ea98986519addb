"""Figures of a language model in the portfolio, with scripts in its place, on tables of real training runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from agent.llm.scripted import ScriptedModel
from agent.planner.history import History
from agent.planner.portfolio import CONTROL, yields
from agent.task import Task
from agent.thinking.suggesting import MODEL
from bench.figure import Figure, quartiles
from bench.figures.search import control_runs, n_repetitions, ratio_figure
from bench.search_runs import Runs, portfolio_run
from bench.tables import MEASURED, Table, load
from bench.talking import Talking, strong_model, weak_model

_FIRST = 15
_TASK = {"model": {"name": "scripted"}}


def strong_ratio(quick: bool) -> Figure:
    """Regret after 25 evaluations with a model that knows a good region, over the control's."""
    runs, _ = _strong(quick)
    return ratio_figure("model.strong_ratio", runs, control_runs(quick), 25, "with a model that knows a good region")


def strong_share(quick: bool) -> Figure:
    """Share of the next slots that the strong model has after 15 evaluations."""
    _, shares = _strong(quick)
    every = [one for table in shares for one in table]
    given, had = [next_share for next_share, _ in every], [so_far for _, so_far in every]
    return Figure(
        id="model.strong_share",
        value=float(np.median(given)),
        unit="share of the next slots",
        control=None,
        n=len(every),
        spread=quartiles(given),
        note=f"after {_FIRST} evaluations; of the search trials until then it had {np.median(had):.2f}",
    )


def weak_ratio(quick: bool) -> Figure:
    """Regret after 50 evaluations with a model that suggests borders and says rubbish, over the control's."""
    runs = [[_run(load(name), r, weak_model)[0] for r in range(n_repetitions(quick))] for name in MEASURED]
    return ratio_figure("model.weak_ratio", runs, control_runs(quick), 50, "with a model that moves all to borders")


@lru_cache(maxsize=2)
def _strong(quick: bool) -> tuple[list[list[Runs]], list[list[tuple[float, float]]]]:
    found = [[_run(load(name), r, strong_model) for r in range(n_repetitions(quick))] for name in MEASURED]
    return [[runs for runs, _ in table] for table in found], [[share for _, share in table] for table in found]


def _run(
    table: Table, repetition: int, model: Callable[[Table, int], ScriptedModel]
) -> tuple[Runs, tuple[float, float]]:
    """The run, and of the model: its share of the next slots after the first trials, and of those it has had."""
    kept: list[History] = []

    def talking(task: Task) -> list[Talking]:
        return [Talking(task, model(table, repetition))]

    runs = portfolio_run(table, repetition, talking, watch=kept.append, **_TASK)
    at = kept[_FIRST - 1]
    task = table.task(sampler_seed=repetition, trials=_FIRST, **_TASK)
    first = [t for t in at.search if t.suggested_by != "default"]
    had = sum(t.suggested_by == MODEL for t in first) / max(len(first), 1)
    return runs, (yields(task, at, (CONTROL, "refiner", "random", MODEL))[MODEL].share, had)
