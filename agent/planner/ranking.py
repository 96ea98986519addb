"""Who leads: what is believed of each configuration by its values on search and racing seeds. Pure.

Values on fresh seeds and held-out looks never enter: what is chosen here is confirmed there.
"""

from __future__ import annotations

from dataclasses import dataclass

from agent.planner.configuration import configuration_id, default_params
from agent.planner.history import History
from agent.planner.objective import gain
from agent.planner.seeds import is_fresh
from agent.planner.statistics import Standing, standing
from agent.store.views import Purpose, TrialState, TrialView
from agent.task import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    standings: tuple[Standing, ...]
    """The best first; of equals the default, then the one that was tried first."""

    @property
    def leader(self) -> Standing | None:
        return self.standings[0] if self.standings else None

    def of(self, configuration: str) -> Standing | None:
        return next((s for s in self.standings if s.configuration == configuration), None)


def choosing_values(task: Task, history: History) -> dict[str, list[float]]:
    """Valid values by configuration from the search and the race, in the order of the trials' numbers."""
    found: dict[str, list[float]] = {}
    for trial in history.trials:
        if trial.state is TrialState.MEASURED and trial.value is not None and _is_for_choosing(task, trial):
            found.setdefault(trial.configuration, []).append(trial.value)
    return found


def ranking(task: Task, history: History) -> Ranking:
    """Every configuration of the search that has a value."""
    default = configuration_id(default_params(task))
    order = {default: 0}
    for trial in history.search:
        order.setdefault(trial.configuration, trial.number)
    values = {name: v for name, v in choosing_values(task, history).items() if name in order}
    found = standing(values, task.objective.direction)
    return Ranking(
        standings=tuple(
            sorted(found, key=lambda s: (-gain(s.mean, 0.0, task.objective.direction), order[s.configuration]))
        )
    )


def _is_for_choosing(task: Task, trial: TrialView) -> bool:
    match trial.purpose:
        case Purpose.SEARCH:
            return True
        case Purpose.REPLICATE:
            return not is_fresh(task, trial.seed)
        case Purpose.HELD_OUT:
            return False
