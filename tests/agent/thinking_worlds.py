"""Histories and situations for tests of the model as a proposer."""

from __future__ import annotations

import random

from agent_worlds import a_task
from planner_builders import a_trial

from agent.planner.budget import Spend
from agent.planner.history import History
from agent.planner.plan import first_plan
from agent.store.views import ParamValue, TrialFacts, TrialState, TrialView
from agent.task import Task
from agent.thinking.checking import Inquiry
from agent.thinking.context import Situation

DEFAULT: dict[str, ParamValue] = {"x": 0.2, "kind": "a"}
SPEND = Spend(device_seconds=0.0, wall_seconds=0.0, n_slots=2)


def a_search(task: Task, n: int, *, fails_every: int = 0, note: str = "") -> History:
    """The default and `n` - 1 random points, best near x = 0.7; every so many of them gave no value."""
    source = random.Random(7)
    trials: list[TrialView] = [a_trial(task, 1, DEFAULT, 0.75)]
    for number in range(2, n + 1):
        params: dict[str, ParamValue] = {"x": source.random(), "kind": source.choice("ab")}
        if fails_every and number % fails_every == 0:
            lost = a_trial(task, number, params, state=TrialState.INVALID, exit_reason="code_error", note=note)
            trials.append(lost)
        else:
            trials.append(a_trial(task, number, params, 1.0 - (float(params["x"] or 0) - 0.7) ** 2))
    return History.of(trials)


def a_situation(task: Task, history: History, **more: object) -> Situation:
    return Situation(task=task, history=history, plan=first_plan(task), spend=SPEND, **more)  # type: ignore[arg-type]


def an_inquiry(task: Task | None = None, history: History | None = None, n: int = 4) -> Inquiry:
    asked = task or a_task()
    origin = TrialFacts(prompt="suggest@1f", model="small")
    return Inquiry(task=asked, history=history or a_search(asked, 6), n=n, name="model", origin=origin)
