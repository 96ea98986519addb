"""Whole searches on tables, one look-up after another: ours by its portfolio, the control by Optuna's TPE."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import optuna

from agent.planner.history import History, Proposal
from agent.planner.proposers.chosen import chosen_proposers
from agent.planner.proposers.default_first import DefaultFirst
from agent.planner.proposers.optuna_sampler import distribution
from agent.planner.proposers.protocol import Proposer
from agent.planner.standings import params_of, standings
from agent.store.views import ParamValue, TrialState, TrialView
from agent.task import Task
from bench.tables import Table

CHECKPOINTS = (10, 25, 50)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """What a search would answer after so many evaluations."""

    regret: float
    optimism: float
    """Said value better than the table mean, as a share of the range; negative: too modest."""


Runs = dict[int, Chosen]
"""By number of evaluations."""


def portfolio_run(
    table: Table,
    repetition: int,
    more: Callable[[Task], Sequence[Proposer]] = lambda task: (),
    *,
    watch: Callable[[History], None] = lambda history: None,
    **of_task: object,
) -> Runs:
    """Ours: replicates count as evaluations, and the choice is by standing.

    Args:
        watch: is given the history after each evaluation.
        of_task: more of the task.
    """
    task = table.task(sampler_seed=repetition, trials=CHECKPOINTS[-1] + 1, **of_task)
    search = chosen_proposers(task, more(task))
    first = DefaultFirst(task)
    history = History.of(())
    found: Runs = {}
    n_seen: dict[str, int] = {}
    for number in range(1, CHECKPOINTS[-1] + 1):
        proposal = (first.ask(history, 1) or search.ask(history, 1))[0]
        nth = n_seen.get(proposal.configuration, 0)
        n_seen[proposal.configuration] = nth + 1
        value = table.look_up(proposal.params, nth, repetition)
        history = history.after([measured(proposal, number, value)])
        watch(history)
        if number in CHECKPOINTS:
            best = standings(task, history)[0]
            params = params_of(history)[best.configuration]
            found[number] = Chosen(regret=table.regret(params), optimism=(table.mean(params) - best.mean) / table.scale)
    return found


def control_run(table: Table, repetition: int) -> Runs:
    """Optuna's TPE with the default enqueued first; chooses by its best observation."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    task = table.task(sampler_seed=repetition, trials=CHECKPOINTS[-1])
    space = {name: distribution(parameter) for name, parameter in task.space.items()}
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=repetition))
    study.enqueue_trial({name: parameter.default for name, parameter in task.space.items()})
    found: Runs = {}
    n_seen: dict[tuple[ParamValue, ...], int] = {}
    for number in range(1, CHECKPOINTS[-1] + 1):
        trial = study.ask(space)
        cell = tuple(trial.params.values())
        value = table.look_up(trial.params, n_seen.get(cell, 0), repetition)
        n_seen[cell] = n_seen.get(cell, 0) + 1
        study.tell(trial, value)
        if number in CHECKPOINTS:
            params = study.best_trial.params
            found[number] = Chosen(
                regret=table.regret(params), optimism=(table.mean(params) - study.best_value) / table.scale
            )
    return found


def measured(proposal: Proposal, number: int, value: float) -> TrialView:
    """A proposal as a trial that ended with a value."""
    trial = proposal.as_trial(number, trial_id=f"t{number}")
    return replace(
        trial,
        state=TrialState.MEASURED,
        value=value,
        exit_reason="ok",
        device_seconds=60.0,
        launched_at=0.0,
        ended_at=0.0,
    )
