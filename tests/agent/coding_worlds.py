"""Tests of the arm that edits code: answers as a model writes them, and one question without a session around it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from code_worlds import a_code_task
from planner_builders import a_trial
from thinking_worlds import a_situation

from agent.coding.editor import Editor
from agent.coding.errand import Editing
from agent.edits.workshop import Workshop
from agent.llm.chat import Request
from agent.llm.ladder import Asker, Asking
from agent.llm.rung import Rung
from agent.llm.scripted import Said, Scripted, ScriptedModel, called
from agent.llm.standing import Steps
from agent.planner.configuration import configuration_id
from agent.planner.history import History, Proposal
from agent.steps.code_states import rules_of
from agent.store.views import CodeState, TrialState, TrialView
from agent.thinking.beside import at_once
from agent.thinking.context import Situation
from agent.thinking.thinker import ModelThinker

NOW = re.compile(r"^GAIN = ([0-9.]+)$", re.MULTILINE)


def block(old: str, new: str) -> str:
    return f"<<<< edit model.py\nGAIN = {old}\n==== with\nGAIN = {new}\n>>>> end"


def answer(edit: str, **more: Any) -> str:
    return json.dumps({"why": "a larger gain", "gain": 0.1, "chance": 0.7, "edit": edit} | more)


def shown(request: Request) -> str:
    """The gain in the code that a request shows."""
    return NOW.findall(next(m.text for m in request.messages if "The files" in m.text))[-1]


def says(script: Callable[[int, Request], str | Said]) -> ScriptedModel:
    """A model that answers by the tool with what the function of the call's number gives."""
    n = 0

    def reply(request: Request) -> Scripted:
        nonlocal n
        n += 1
        said = script(n, request)
        return called("answer", said) if isinstance(said, str) else said

    return ScriptedModel(reply)


def repaired(request: Request) -> str:
    """What a request says of the answer before."""
    return request.messages[-1].text if len(request.messages) > 2 else ""


class Desk:
    """One model that is asked for edits of `GAIN = 0.5`; the default is trial 1, measured."""

    def __init__(self, folder: Path, **changes: Any) -> None:
        root = folder / "code"
        self.task = a_code_task(root, **({"model": {"name": "small"}} | changes))
        self.folder = folder
        self.workshop = Workshop.open(folder / "workshop", root, rules_of(self.task))
        self.editor = Editor(self.task, self.workshop, rules_of(self.task))
        params = {name: parameter.default for name, parameter in self.task.space.items()}
        self.trials: list[TrialView] = [a_trial(self.task, 1, dict(params), 0.5)]
        self.lost = ""

    def tried(self, proposal: Proposal, value: float | None, note: str | None = None) -> TrialView:
        """The proposal as a trial that has ended."""
        number = len(self.trials) + 1
        made = proposal.as_trial(number, trial_id=f"s1-t{number}", session_id="s1")
        state = TrialState.INVALID if value is None else TrialState.MEASURED
        self.trials.append(replace(made, state=state, value=value, note=note, device_seconds=10.0, ended_at=1.0))
        return self.trials[-1]

    def situation(self, history: History, refusals: Sequence[str] = ()) -> Situation:
        return a_situation(self.task, history, refusals=refusals)

    def ask(self, model: ScriptedModel, *, rung: Rung = Rung.TOOLS) -> list[Proposal]:
        """What one question gives; where it gives nothing, `lost` says why."""
        asker = Asker(model, Asking(steps=Steps(best=rung)), now=lambda: 0.0)
        errand = Editing(self.task, self.editor, session_id="s1")
        thinker = ModelThinker(self.task, asker, self.situation, errand, start=at_once)
        thinker.begin(History.of(self.trials), 1)
        news = thinker.take_news()
        if not thinker.is_done:
            self.lost = " ".join(news)
            return []
        found = list(thinker.take().proposals)
        said = thinker.take_said()
        self.lost = "" if found or said is None else said.text
        self.asides = thinker.refused([])
        return found

    def source(self, code: CodeState | None) -> bytes:
        return self.editor.sources(code)["model.py"]


def configuration_of(desk: Desk, code: CodeState | None) -> str:
    return configuration_id(desk.trials[0].params, code)
