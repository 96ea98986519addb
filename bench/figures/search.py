"""Figures of the search on tables of real training runs, against Optuna's TPE that starts from the same default."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from agent.planner.history import History, Proposal
from agent.planner.proposers.chosen import chosen_proposers
from agent.planner.proposers.drawing import source_for
from agent.planner.proposers.protocol import Proposer
from agent.planner.proposers.random_points import RandomPoints
from agent.store.views import TrialState
from agent.task import Task
from bench.figure import Figure, median_of, quartiles
from bench.search_runs import Chosen, Runs, control_run, measured, portfolio_run
from bench.tables import MEASURED, load

_N_RESAMPLES = 10_000


def regret25(quick: bool) -> Figure:
    """Regret of the chosen configuration after 25 evaluations, over the control's."""
    return _regret("agent.regret25", 25, quick)


def regret50(quick: bool) -> Figure:
    """The same after 50."""
    return _regret("agent.regret50", 50, quick)


def optimism(quick: bool) -> Figure:
    """What is said of the chosen configuration after 50 evaluations, better than its table mean by so much."""
    ours, control = ([[r[50].optimism for r in runs] for runs in side] for side in (_ours(quick), control_runs(quick)))
    by_table = np.mean(ours, axis=1)
    return Figure(
        id="agent.optimism",
        value=float(np.mean(ours)),
        unit="share of the range",
        control=float(np.mean(control)),
        n=int(np.size(ours)),
        spread=quartiles([float(x) for x in by_table]),
        note=f"standing of the chosen one, before any fresh seed; {len(ours)} tables; spread: quartiles of the tables",
    )


def rubbish_ratio(quick: bool) -> Figure:
    """Regret after 50 evaluations with a proposer of rubbish in the portfolio, over the control's."""
    runs = [[portfolio_run(load(name), r, _rubbish) for r in range(n_repetitions(quick))] for name in MEASURED]
    return ratio_figure(
        "agent.rubbish_ratio", runs, control_runs(quick), 50, "with a proposer that moves all to random borders"
    )


def proposal_ms(quick: bool) -> Figure:
    """One proposal of the whole portfolio after 10,000 finished trials, 64 running."""
    task = _mixed_task()
    history = _long_history(task, n_ended=10_000, n_running=64)
    search = chosen_proposers(task)
    started = time.perf_counter()
    search.ask(history, 1)
    first_ms = (time.perf_counter() - started) * 1000
    samples: list[float] = []
    for _ in range(40 if quick else 150):
        number = history.trials[-1].number + 1
        started = time.perf_counter()
        proposal = search.ask(history, 1)[0]
        samples.append((time.perf_counter() - started) * 1000)
        history = history.after([measured(proposal, number, _value(proposal, number))])
    return Figure(
        id="agent.proposal_ms",
        value=median_of(samples),
        unit="ms",
        control=None,
        n=len(samples),
        spread=quartiles(samples),
        note=f"10 parameters, 64 running; the first one of a new process {first_ms:.0f} ms; spread: quartiles",
    )


def n_repetitions(quick: bool) -> int:
    return 2 if quick else 20


@lru_cache(maxsize=2)
def _ours(quick: bool) -> list[list[Runs]]:
    return [[portfolio_run(load(name), r) for r in range(n_repetitions(quick))] for name in MEASURED]


@lru_cache(maxsize=2)
def control_runs(quick: bool) -> list[list[Runs]]:
    return [[control_run(load(name), r) for r in range(n_repetitions(quick))] for name in MEASURED]


def _regret(figure_id: str, at: int, quick: bool) -> Figure:
    return ratio_figure(figure_id, _ours(quick), control_runs(quick), at, "choice by standing, replicates counted")


def ratio_figure(figure_id: str, ours: list[list[Runs]], control: list[list[Runs]], at: int, what: str) -> Figure:
    """Upper 95 % bound of the ratio of the means over the tables, repetitions resampled in pairs."""
    first, second = (
        np.array([[runs[at].regret for runs in table] for table in side]).mean(axis=0) for side in (ours, control)
    )
    source = np.random.default_rng(0)
    rows = source.integers(len(first), size=(_N_RESAMPLES, len(first)))
    ratios = first[rows].mean(axis=1) / second[rows].mean(axis=1)
    ratio = float(first.mean() / second.mean())
    by_table = ", ".join(
        f"{name.split('/')[1]} {_mean(a, at):.4f}/{_mean(b, at):.4f}"
        for name, a, b in zip(MEASURED, ours, control, strict=True)
    )
    return Figure(
        id=figure_id,
        value=float(np.quantile(ratios, 0.95)),
        unit="ratio",
        control=float(second.mean()),
        n=len(first),
        spread=(float(np.quantile(ratios, 0.05)), float(np.quantile(ratios, 0.95))),
        note=f"{what}; ratio {ratio:.3f}, ours {first.mean():.4f}; spread: 5 and 95 % of resampled ratios; {by_table}",
    )


def _mean(runs: Sequence[Runs], at: int) -> float:
    chosen: list[Chosen] = [r[at] for r in runs]
    return float(np.mean([c.regret for c in chosen]))


class Rubbish(RandomPoints):
    """Every numeric parameter at a border of its range, drawn at random: training that fails or learns nothing."""

    name = "rubbish"

    def ask(self, history: History, n: int) -> list[Proposal]:
        number = history.trials[-1].number if history.trials else 0
        found = []
        for offset in range(n):
            source = source_for(self._task, self.name, number + offset)
            places = source.integers(2, size=len(self._geometry.names)).astype(float)
            params = self._geometry.params(places)
            found.append(self._proposal(params))
        return found


def _rubbish(task: Task) -> Sequence[Proposer]:
    return [Rubbish(task)]


def _mixed_task() -> Task:
    space: dict[str, object] = {
        f"x{i}": {"type": "float", "low": 1e-4, "high": 1.0, "log": i % 2 == 0, "default": 0.1} for i in range(6)
    }
    space |= {f"n{i}": {"type": "int", "low": 1, "high": 512, "default": 64} for i in range(2)}
    space |= {f"k{i}": {"type": "categorical", "choices": ["a", "b", "c"], "default": "a"} for i in range(2)}
    return Task.model_validate(
        {
            "task": "bench",
            "objective": {"metric": "score", "direction": "maximize"},
            "job": {"command": "train"},
            "space": space,
            "budgets": {"trials": 100_000},
        }
    )


def _long_history(task: Task, *, n_ended: int, n_running: int) -> History:
    names = ("optuna", "refiner", "random")
    found = []
    proposals = RandomPoints(task).ask(History.of(()), n_ended + n_running)
    for number, proposal in enumerate(proposals, start=1):
        trial = measured(proposal, number, _value(proposal, number))
        made_by = names[number % len(names)]
        if number > n_ended:
            trial = replace(trial, state=TrialState.LAUNCHED, value=None, ended_at=None)
        found.append(replace(trial, suggested_by=made_by))
    return History.of(found)


def _value(proposal: Proposal, number: int) -> float:
    good = -sum((float(v) - 0.3) ** 2 for v in proposal.params.values() if isinstance(v, float))
    return good + 0.1 * float(np.random.default_rng(number).standard_normal())
