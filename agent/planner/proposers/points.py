"""Configurations that the task lists, in its order. Pure.

They are tried as they are written: only equal ones are one, however close two of them lie.
"""

from __future__ import annotations

from agent.planner.configuration import canonical, configuration_id, default_params
from agent.planner.forbidden import forbidden
from agent.planner.history import History, Proposal
from agent.store.views import ParamValue, Purpose
from agent.task import Task

POINTS = "points"
"""Their name in `suggested_by`."""


def listed(task: Task) -> dict[str, dict[str, ParamValue]]:
    """By configuration, in the order of the file; what a point does not name has its default. Equal ones are one."""
    found: dict[str, dict[str, ParamValue]] = {}
    for point in task.search.points:
        params = canonical({**default_params(task), **point}, task)
        found.setdefault(configuration_id(params), params)
    return found


def n_untried(task: Task, history: History) -> int:
    """Points that the search has not tried, the default apart, which comes first in any case."""
    tried = {configuration_id(default_params(task)), *(trial.configuration for trial in history.search)}
    return len(_allowed(task).keys() - tried) if task.search.points else 0


def _allowed(task: Task) -> dict[str, dict[str, ParamValue]]:
    """Those that are not forbidden."""
    return {name: params for name, params in listed(task).items() if forbidden(params, task) is None}


class Points:
    """Implements `Proposer`."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._listed = listed(task)

    @property
    def name(self) -> str:
        return POINTS

    def tell(self, history: History) -> None:
        """The history says it all."""

    def ask(self, history: History, n: int) -> list[Proposal]:
        tried = {trial.configuration for trial in history.search}
        left = [
            (at, name)
            for at, (name, params) in enumerate(self._listed.items(), start=1)
            if name not in tried and forbidden(params, self._task) is None
        ]
        return [
            Proposal(
                params=dict(self._listed[name]),
                configuration=name,
                seed=self._task.seeds.search,
                purpose=Purpose.SEARCH,
                suggested_by=self.name,
                why=f"point {at} of {len(self._listed)} that the task lists",
            )
            for at, name in left[: max(n, 0)]
        ]
