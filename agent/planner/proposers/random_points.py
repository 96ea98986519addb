"""Random configurations: they learn nothing, and so are never led astray. Pure."""

from __future__ import annotations

from agent.planner.configuration import configuration_id
from agent.planner.geometry import Geometry
from agent.planner.history import History, Proposal
from agent.planner.proposers.drawing import source_for, uniform_places
from agent.planner.repetition import Tried
from agent.store.views import ParamValue, Purpose
from agent.task import Task

_N_REDRAWS = 50


class RandomPoints:
    """Implements `Proposer`."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._geometry = Geometry(task)
        self._tried = Tried(task)

    @property
    def name(self) -> str:
        return "random"

    def tell(self, history: History) -> None:
        """The history says it all."""

    def ask(self, history: History, n: int) -> list[Proposal]:
        tried = self._tried
        tried.follow(history.search)
        number = len(history.search)
        found: list[Proposal] = []
        names = set()
        while len(found) < n:
            number += 1
            for places in uniform_places(self._geometry, source_for(self._task, self.name, number), _N_REDRAWS):
                params = self._geometry.params(places)
                name = configuration_id(params)
                if name not in names and tried.objection(params) is None:
                    break
            else:
                break
            names.add(name)
            found.append(self._proposal(params))
        return found

    def _proposal(self, params: dict[str, ParamValue]) -> Proposal:
        return Proposal(
            params=params,
            configuration=configuration_id(params),
            seed=self._task.seeds.search,
            purpose=Purpose.SEARCH,
            suggested_by=self.name,
            why="drawn at random from the whole space",
        )
