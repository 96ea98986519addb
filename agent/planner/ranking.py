"""The order in which configurations stand: by what is believed of each, of equals the default first. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from agent.planner.configuration import configuration_id, default_params
from agent.planner.forbidden import forbidden
from agent.planner.history import History
from agent.planner.objective import gain
from agent.planner.standings import params_of, standings
from agent.planner.statistics import Standing
from agent.store.views import ParamValue
from agent.task import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    standings: tuple[Standing, ...]
    """The best first; of equals the default, then the one that was tried first."""

    @property
    def leader(self) -> Standing | None:
        return self.standings[0] if self.standings else None

    def of(self, configuration: str) -> Standing | None:
        """None: it has no value, or is far behind."""
        return next((s for s in self.standings if s.configuration == configuration), None)


def ranking(task: Task, history: History) -> Ranking:
    """Of the configurations of the search that have a value."""
    order: dict[str, int] = {configuration_id(default_params(task)): 0}
    for trial in history.search:
        order.setdefault(trial.configuration, trial.number)
    found = [s for s in standings(task, history) if s.configuration in order]
    return Ranking(
        standings=tuple(
            sorted(found, key=lambda s: (-gain(s.mean, 0.0, task.objective.direction), order[s.configuration]))
        )
    )


def best_params(task: Task, history: History) -> dict[str, ParamValue]:
    """What an idea leaves open is taken from here: the leader; the default where there is none, or it is forbidden."""
    leader = ranking(task, history).leader
    found = default_params(task) if leader is None else params_of(history)[leader.configuration]
    return default_params(task) if forbidden(found, task) else found
