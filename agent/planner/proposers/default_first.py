"""The default configuration, once, with the search seed: always the first trial."""

from __future__ import annotations

from agent.planner.configuration import configuration_id, default_params
from agent.planner.history import History, Proposal
from agent.store.views import Purpose
from agent.task import Task


class DefaultFirst:
    def __init__(self, task: Task) -> None:
        self._task = task

    @property
    def name(self) -> str:
        return "default"

    def tell(self, history: History) -> None:
        """The history says it all."""

    def ask(self, history: History, n: int) -> list[Proposal]:
        if n < 1 or history.search:
            return []
        params = default_params(self._task)
        return [
            Proposal(
                params=params,
                configuration=configuration_id(params),
                seed=self._task.seeds.search,
                purpose=Purpose.SEARCH,
                suggested_by="default",
                why="the default configuration comes first: everything is compared with it",
            )
        ]
