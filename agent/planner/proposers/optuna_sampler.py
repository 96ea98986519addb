"""Optuna's TPE as a proposer: its study lives in memory and follows our history.

The sampler is seeded anew for every trial number, so that a session that was killed proposes what it would have
proposed undisturbed. Trials that gave no value are told as pruned and infeasible: they push the search away without
a made-up value. Running ones are known to the sampler (constant liar), so parallel proposals spread out.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import TrialState as OptunaState

from agent.planner import configuration
from agent.planner.history import History, Proposal
from agent.store.views import ParamValue, Purpose, TrialState, TrialView
from agent.task import CategoricalParameter, FloatParameter, IntParameter, Parameter, Task

_N_REDRAWS = 20
"""Draws for one proposal that only repeat tried points, before the sampler is replaced by a random one."""
_ENUMERABLE = 20_000
"""Spaces up to this size are searched for what is left when the sampler only repeats itself."""


class OptunaSampler:
    """Implements `Proposer`. Holds the study as a cache of the history; a new instance gives the same answers."""

    def __init__(self, task: Task) -> None:
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._task = task
        self._space = {name: _distribution(parameter) for name, parameter in task.space.items()}
        self._size = configuration.size(task)
        self._study = optuna.create_study(direction=task.objective.direction.value)
        self._trial_ids: dict[str, int] = {}
        self._settled: set[str] = set()

    @property
    def name(self) -> str:
        return "optuna"

    def tell(self, history: History) -> None:
        """Bring the study up to the history now rather than at the next `ask`."""
        self._follow(history)

    def ask(self, history: History, n: int) -> list[Proposal]:
        """New configurations only; fewer than `n` when the space has no more."""
        self._follow(history)
        tried = {trial.configuration for trial in history.search}
        found: list[Proposal] = []
        number = history.trials[-1].number if history.trials else 0
        while len(found) < n:
            number += 1
            params = self._draw(number, tried)
            if params is None:
                break
            name = configuration.configuration_id(params)
            tried.add(name)
            found.append(self._proposal(params, name, len(tried)))
        return found

    def _proposal(self, params: dict[str, ParamValue], name: str, n_tried: int) -> Proposal:
        return Proposal(
            params=params,
            configuration=name,
            seed=self._task.seeds.search,
            purpose=Purpose.SEARCH,
            suggested_by="optuna",
            why=f"configuration {n_tried} of {self._task.budgets.trials}, chosen from the values so far",
        )

    def _draw(self, number: int, tried: set[str]) -> dict[str, ParamValue] | None:
        """One configuration that was not tried; None when there is none."""
        if self._size is not None and len(tried) >= self._size:
            return None
        for redraw in range(2 * _N_REDRAWS):
            seed = self._seed(number, redraw)
            is_stuck = redraw >= _N_REDRAWS
            sampler = optuna.samplers.RandomSampler(seed) if is_stuck else optuna.samplers.TPESampler(seed=seed)
            self._study.sampler = sampler
            trial = self._study.ask(self._space)
            params = configuration.canonical(trial.params, self._task)
            name = configuration.configuration_id(params)
            if name not in tried and not configuration.problems(params, self._task):
                self._trial_ids[name] = trial._trial_id
                return params
            self._study.tell(trial, state=OptunaState.FAIL)
        return self._left_over(tried)

    def _left_over(self, tried: set[str]) -> dict[str, ParamValue] | None:
        if self._size is None or self._size > _ENUMERABLE:
            return None
        for params in _every_point(self._task):
            if configuration.configuration_id(params) not in tried:
                return params
        return None

    def _seed(self, number: int, redraw: int) -> int:
        text = f"{self._task.sampler_seed}/{number}/{redraw}".encode()
        return int.from_bytes(hashlib.sha256(text).digest()[:4], "big")

    def _follow(self, history: History) -> None:
        """Bring the study up to the history: new trials in, ended ones told, withdrawn ones out."""
        known = set()
        for trial in history.search:
            known.add(trial.configuration)
            if trial.configuration in self._settled:
                continue
            if trial.configuration not in self._trial_ids:
                self._add(trial)
            elif trial.is_ended:
                self._tell(trial)
        for name in [name for name in self._trial_ids if name not in known]:
            self._study._storage.set_trial_state_values(self._trial_ids.pop(name), state=OptunaState.FAIL)

    def _add(self, trial: TrialView) -> None:
        is_valid = trial.state is TrialState.MEASURED
        state = OptunaState.RUNNING
        if trial.is_ended:
            state = OptunaState.COMPLETE if is_valid else OptunaState.PRUNED
        frozen = optuna.trial.create_trial(
            state=state,
            value=trial.value if is_valid else None,
            params=dict(trial.params),
            distributions=self._space,
            constraints={"valid": 1.0} if trial.state is TrialState.INVALID else None,
        )
        trial_id = self._study._storage.create_new_trial(self._study._study_id, template_trial=frozen)
        if trial.is_ended:
            self._settled.add(trial.configuration)
        self._trial_ids[trial.configuration] = trial_id

    def _tell(self, trial: TrialView) -> None:
        handle = optuna.trial.Trial(self._study, self._trial_ids[trial.configuration])
        if trial.state is TrialState.MEASURED:
            self._study.tell(handle, trial.value)
        else:
            handle.set_constraint("valid", 1.0)
            self._study.tell(handle, state=OptunaState.PRUNED)
        self._settled.add(trial.configuration)


def _distribution(parameter: Parameter) -> BaseDistribution:
    match parameter:
        case FloatParameter():
            return FloatDistribution(parameter.low, parameter.high, log=parameter.log)
        case IntParameter():
            return IntDistribution(parameter.low, parameter.high, log=parameter.log)
        case CategoricalParameter():
            return CategoricalDistribution(parameter.choices)


def _every_point(task: Task) -> Iterator[dict[str, ParamValue]]:
    axes: list[list[ParamValue]] = []
    for parameter in task.space.values():
        match parameter:
            case IntParameter():
                axes.append(list(range(parameter.low, parameter.high + 1)))
            case CategoricalParameter():
                axes.append(list(parameter.choices))
            case FloatParameter():
                return
    for values in itertools.product(*axes):
        yield dict(zip(task.space, values, strict=True))


__all__ = ["OptunaSampler"]
