"""Who leads: what is believed of each configuration by all of its values in search and race. Pure.

Values on fresh seeds are no part of it: they are kept for the claim at the end.
"""

from __future__ import annotations

from agent.planner import seeds
from agent.planner.history import History
from agent.planner.statistics.correction import Standing, standing
from agent.store.views import ParamValue, TrialState, TrialView
from agent.task import Direction, Task

N_BEST = 400
"""So many of the best by their mean are judged; more say nothing new about the best and cost time."""


def values_so_far(task: Task, history: History) -> dict[str, list[float]]:
    """Valid values of each configuration, those of the search and of the race."""
    found: dict[str, list[float]] = {}
    for trial in history.search:
        if trial.state is TrialState.MEASURED and trial.value is not None:
            found.setdefault(trial.configuration, []).append(trial.value)
    for (name, seed), trial in history.replicates.items():
        if trial.state is TrialState.MEASURED and trial.value is not None and seeds.is_racing(task, seed):
            found.setdefault(name, []).append(trial.value)
    return found


def standings(task: Task, history: History) -> tuple[Standing, ...]:
    """The best first, at most `N_BEST`."""
    values = values_so_far(task, history)
    if len(values) > N_BEST:
        sign = 1.0 if task.objective.direction is Direction.MAXIMIZE else -1.0
        best = sorted(values, key=lambda name: -sign * sum(values[name]) / len(values[name]))[:N_BEST]
        values = {name: values[name] for name in best}
    return standing(values, task.objective.direction)


def leader(task: Task, history: History) -> TrialView | None:
    """The search trial of the configuration with the best standing; of equals the earliest. None: no value yet."""
    ranked = standings(task, history)
    if not ranked:
        return None
    equals = {s.configuration for s in ranked if s.mean == ranked[0].mean}
    return next(trial for trial in history.search if trial.configuration in equals)


def params_of(history: History) -> dict[str, dict[str, ParamValue]]:
    """Parameters of each configuration that the search tried."""
    return {trial.configuration: trial.params for trial in history.search}


def n_racing(task: Task, history: History) -> int:
    """Replicates that the race has had, those in flight included."""
    return sum(1 for _, seed in history.replicates if seeds.is_racing(task, seed))
