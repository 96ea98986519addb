"""Who leads: what is believed of each configuration by all of its values in search and race. Pure.

Values on fresh seeds are no part of it: they are kept for the claim at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from heapq import nlargest, nsmallest
from typing import TypeVar

from agent.planner import seeds
from agent.planner.history import History
from agent.planner.replicates import is_its_own_failure
from agent.planner.statistics.correction import Standing, standing
from agent.store.views import ParamValue, TrialState
from agent.task import Direction, Task

Answer = TypeVar("Answer")

N_BEST = 400
"""So many of the best by their mean are judged; more say nothing new about the best and cost time."""


def once_per_history(function: Callable[[Task, History], Answer]) -> Callable[[Task, History], Answer]:
    """Keep the last answer: several ask the same about one history, and a long one takes its time."""
    last: list[tuple[Task, History, Answer]] = []

    @wraps(function)
    def answered(task: Task, history: History) -> Answer:
        for known_task, known_history, answer in tuple(last):
            if known_task is task and known_history is history:
                return answer
        answer = function(task, history)
        last[:] = [(task, history, answer)]
        return answer

    return answered


@once_per_history
def _firsts(task: Task, history: History) -> dict[str, float]:
    """The search's own value of each configuration: floats alone, since there may be many thousands."""
    return {
        t.configuration: t.value
        for t in reversed(history.search)
        if t.value is not None and t.state is TrialState.MEASURED
    }


@once_per_history
def _others(task: Task, history: History) -> dict[str, list[float]]:
    """All further values of those that have any; none of one that failed by itself, whose luck they would be."""
    failed = {trial.configuration for trial in history.search if is_its_own_failure(trial)}
    found: dict[str, list[float]] = {}
    for (name, seed), trial in history.replicates.items():
        if trial.state is TrialState.MEASURED and trial.value is not None and seeds.is_racing(task, seed):
            if name in failed:
                continue
            found.setdefault(name, []).append(trial.value)
    return found


def values_so_far(task: Task, history: History, names: Iterable[str] | None = None) -> dict[str, list[float]]:
    """Valid values of each configuration (of those named), its value in the search first, then those of the race.

    One that lost its first value to the machine may still have others.
    """
    first, others = _firsts(task, history), _others(task, history)
    chosen = {**first, **others} if names is None else names
    return {name: [*([first[name]] if name in first else ()), *others.get(name, ())] for name in chosen}


@once_per_history
def means_so_far(task: Task, history: History) -> Mapping[str, float]:
    """Plain mean of the values of each configuration."""
    values = values_so_far(task, history, _others(task, history))
    return {**_firsts(task, history), **{name: sum(v) / len(v) for name, v in values.items()}}


@once_per_history
def standings(task: Task, history: History) -> tuple[Standing, ...]:
    """The best first, at most `N_BEST`."""
    means = means_so_far(task, history)
    names: Iterable[str] = means
    if len(means) > N_BEST:
        select = nlargest if task.objective.direction is Direction.MAXIMIZE else nsmallest
        names = select(N_BEST, means, key=means.__getitem__)
    values = values_so_far(task, history, names)
    return standing(values, task.objective.direction)


def params_of(history: History) -> dict[str, dict[str, ParamValue]]:
    """Parameters of each configuration that the search tried."""
    return {trial.configuration: trial.params for trial in history.search}


def n_racing(task: Task, history: History) -> int:
    """Replicates that the race has had, those in flight included."""
    return sum(1 for _, seed in history.replicates if seeds.is_racing(task, seed))
