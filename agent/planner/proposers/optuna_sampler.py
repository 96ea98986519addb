"""Optuna's samplers as a proposer: the study lives in memory and follows our history.

The sampler is seeded anew for every configuration, by how many there are: a session that was killed proposes what it
would have proposed undisturbed. Trials that gave no value are told as pruned and infeasible: they push the search
away without a made-up value. Running ones are known to the sampler (constant liar), so parallel proposals spread out.

What lies beyond the space is no part of the study: its distributions have no place for it, and a value moved to the
border would be a lie about the border.

What a proposal costs grows with the study, so the study holds a part of a long history: the best and the newest.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

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
from agent.planner.proposers.drawing import seed_for
from agent.planner.proposers.samplers import GENERATION_KEY, POPULATION, missing_for, sampler_named
from agent.planner.reach import beyond, may_leave
from agent.planner.repetition import Tried
from agent.store.views import ParamValue, Purpose, TrialState, TrialView
from agent.task import CategoricalParameter, Direction, FloatParameter, IntParameter, Parameter, Task

_N_REDRAWS = 20
"""Draws for one proposal that only repeat tried points, before the sampler is replaced by a random one."""
_ENUMERABLE = 20_000
"""Spaces up to this size are searched for what is left when the sampler only repeats itself."""
N_WHOLE = 400
"""Search trials up to which the study holds them all."""
_N_BEST = 150
_N_NEWEST = 150
_BLOCK = 100
"""Of a longer history the study holds the best and the newest; which are the newest changes in steps of so many, so
that the study is seldom built anew."""
_FOLLOWS = ("tpe", "random")
"""Samplers that keep nothing of their own in the study: it may grow with the history. For others it is built anew."""


class OptunaSampler:
    """Implements `Proposer`. Holds the study as a cache of the history; a new instance gives the same answers.

    Raises:
        ValueError: the sampler of the task needs a package that is not installed.
    """

    def __init__(self, task: Task) -> None:
        missing = missing_for(task.search.sampler)
        if missing is not None:
            raise ValueError(missing)
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._task = task
        self._space = {name: distribution(parameter) for name, parameter in task.space.items()}
        self._size = configuration.size(task)
        self._is_wide = may_leave(task)
        self._tried = Tried(task)
        self._forget()

    @property
    def name(self) -> str:
        return "optuna"

    def tell(self, history: History) -> None:
        """Bring the study up to the history now rather than at the next `ask`."""
        self._follow(history)

    def ask(self, history: History, n: int) -> list[Proposal]:
        """New configurations only; fewer than `n` when the space has no more."""
        self._follow(history)
        self._tried.follow(history.search)
        tried = {trial.configuration for trial in history.search}
        found: list[Proposal] = []
        number = len(history.search)
        while len(found) < n:
            number += 1
            params = self._draw(number, tried)
            if params is None:
                break
            name = configuration.configuration_id(params)
            tried.add(name)
            found.append(self._proposal(params, name, len(tried)))
        return found

    def _forget(self) -> None:
        self._study = optuna.create_study(direction=self._task.objective.direction.value)
        self._trial_ids: dict[str, int] = {}
        self._settled: set[str] = set()
        self._held: list[str] = []
        self._n_complete = 0

    def _proposal(self, params: dict[str, ParamValue], name: str, n_tried: int) -> Proposal:
        return Proposal(
            params=params,
            configuration=name,
            seed=self._task.seeds.search,
            purpose=Purpose.SEARCH,
            suggested_by=self.name,
            why=f"configuration {n_tried} of {self._task.budgets.trials}, chosen from the values so far",
        )

    def _draw(self, number: int, tried: set[str]) -> dict[str, ParamValue] | None:
        """One configuration that was not tried, nor any near it; None when there is none."""
        if self._size is not None and not self._is_wide and len(tried) >= self._size:
            return None
        for redraw in range(2 * _N_REDRAWS):
            seed = seed_for(self._task, "optuna", number, redraw)
            named = "random" if redraw >= _N_REDRAWS else self._task.search.sampler
            self._study.sampler = sampler_named(
                named, seed, len(tried) + redraw, self._study, base_seed=self._task.sampler_seed
            )
            trial = self._study.ask(self._space)
            params = configuration.canonical(trial.params, self._task)
            name = configuration.configuration_id(params)
            is_new = name not in tried and self._tried.objection(params) is None
            if is_new and not configuration.problems(params, self._task):
                self._trial_ids[name] = trial._trial_id
                return params
            self._study.tell(trial, state=OptunaState.FAIL)
        return self._left_over(tried)

    def _left_over(self, tried: set[str]) -> dict[str, ParamValue] | None:
        if self._size is None or self._size > _ENUMERABLE:
            return None
        for params in _every_point(self._task):
            if configuration.configuration_id(params) not in tried and self._tried.objection(params) is None:
                return params
        return None

    def _follow(self, history: History) -> None:
        """Bring the study up to the history: new trials in, ended ones told, withdrawn ones out."""
        inside = [t for t in history.search if not beyond(t.params, self._task)] if self._is_wide else history.search
        part = _part(inside, self._task)
        names = [trial.configuration for trial in part]
        if self._task.search.sampler not in _FOLLOWS or names[: len(self._held)] != self._held:
            self._forget()
        self._held = names
        known = set(names)
        for trial in part:
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
            system_attrs={GENERATION_KEY: self._n_complete // POPULATION} if is_valid else None,
        )
        self._n_complete += is_valid
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


def _part(search: Sequence[TrialView], task: Task) -> Sequence[TrialView]:
    """What the study holds, in the order of the trials: all, or the best of the older ones and the newest."""
    if len(search) <= N_WHOLE:
        return search
    first_new = (len(search) - _N_NEWEST) // _BLOCK * _BLOCK
    older = [t for t in search[:first_new] if t.state is TrialState.MEASURED and t.value is not None]
    sign = -1.0 if task.objective.direction is Direction.MAXIMIZE else 1.0
    best = sorted(older, key=lambda t: (sign * (t.value or 0.0), t.number))[:_N_BEST]
    running = [t for t in search[:first_new] if not t.is_ended]
    return [*sorted((*best, *running), key=lambda t: t.number), *search[first_new:]]


def distribution(parameter: Parameter) -> BaseDistribution:
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
