"""A language model with a script as one arm of a search on tables: asked, read and checked as in a session."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from agent.llm.chat import Request
from agent.llm.ladder import Asker, asking
from agent.llm.scripted import Scripted, ScriptedModel, called
from agent.planner.budget import Spend
from agent.planner.history import History, Proposal
from agent.planner.plan import first_plan
from agent.store.views import ParamValue, Purpose
from agent.task import Task
from agent.thinking.beside import at_once
from agent.thinking.context import Situation
from agent.thinking.opening import prompt_limit
from agent.thinking.suggesting import Suggesting
from agent.thinking.thinker import ModelThinker
from bench.tables import Table

GOOD_PART = 0.05
"""The strong model draws from the best configurations of the table, so large a part of them."""
_RUBBISH_ANSWERS = ("I would rather talk about the weather.", '{"trials": [{"parameters": ')
"""What the weak model says instead of an answer, every third time."""


class Talking:
    """Implements `Proposer`: what an answer suggests is handed out before the next question."""

    def __init__(self, task: Task, model: ScriptedModel) -> None:
        assert task.model is not None
        plan, spend = first_plan(task), Spend(device_seconds=0.0, wall_seconds=0.0)

        def look(history: History) -> Situation:
            return Situation(task=task, history=history, plan=plan, spend=spend)

        self._batch = task.model.batch
        errand = Suggesting(task, prompt_limit(task, task.model))
        self._thinker = ModelThinker(task, Asker(model, asking(task.model)), look, errand, start=at_once)
        self._waiting: list[Proposal] = []

    @property
    def name(self) -> str:
        return self._thinker.name

    def ask(self, history: History, n: int) -> list[Proposal]:
        tried = {trial.configuration for trial in history.search}
        self._waiting = [one for one in self._waiting if one.configuration not in tried]
        if not self._waiting:
            self._thinker.begin(history, self._batch)
            if self._thinker.is_done:
                given = self._thinker.take().proposals
                self._waiting = [one for one in given if one.purpose is Purpose.SEARCH]
        return self._waiting[:n]

    def tell(self, history: History) -> None:
        """Nothing is kept beside what waits."""


def strong_model(table: Table, repetition: int) -> ScriptedModel:
    """It knows a good region: every point that it names is one of the best few of the table, drawn at random."""
    source = np.random.default_rng((repetition, 1))
    order = np.argsort(table.means, axis=None)
    good = order[: max(int(GOOD_PART * order.size), 1)]

    def answer(request: Request) -> Scripted:
        cells = [np.unravel_index(int(one), table.means.shape) for one in source.choice(good, size=4)]
        return _calls(request, [_params(table, [int(place) for place in cell]) for cell in cells])

    return ScriptedModel(answer)


def weak_model(table: Table, repetition: int) -> ScriptedModel:
    """It moves everything to a border of its range, and says nothing that can be read every third time."""
    source = np.random.default_rng((repetition, 2))
    n_asked = 0

    def answer(request: Request) -> Scripted:
        nonlocal n_asked
        n_asked += 1
        if n_asked % 3 == 0:
            return _RUBBISH_ANSWERS[n_asked % 2]
        borders = [[int(source.integers(2)) * (len(choices) - 1) for choices in table.grid.values()] for _ in range(4)]
        return _calls(request, [_params(table, places) for places in borders])

    return ScriptedModel(answer)


def _params(table: Table, places: Sequence[int]) -> dict[str, ParamValue]:
    return {
        name: place if table.is_ordinal[name] else choices[place]
        for (name, choices), place in zip(table.grid.items(), places, strict=True)
    }


def _calls(request: Request, points: Sequence[dict[str, ParamValue]]) -> Scripted:
    answer = json.dumps({"trials": [{"parameters": point, "why": "it does well"} for point in points]})
    return called(request.tools[0].name, answer) if request.tools else answer
