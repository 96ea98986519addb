"""The asker of a real session: its model as the task says, its standing as the calls before have left it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from agent.llm.chat import ModelError, Outcome, Reply, Request, Trouble
from agent.llm.ladder import Asker, asking
from agent.llm.opening import open_model
from agent.llm.rung import Rung
from agent.llm.standing import Tried
from agent.store.calls import model_calls_of
from agent.store.fenced import FencedWriter, Line
from agent.store.views import ModelCallView
from agent.task import Task


class Unopened:
    """Implements `ChatModel` for a model that can not be opened: every call says why."""

    def __init__(self, name: str, error: ModelError) -> None:
        self._name = name
        self._error = error

    @property
    def name(self) -> str:
        return self._name

    def complete(self, request: Request, *, deadline_s: float, on_text: Callable[[str], None] | None = None) -> Reply:
        raise ModelError(self._error.trouble, str(self._error))


def asker_of(task: Task, folder: Path, writer: FencedWriter, *, environ: Mapping[str, str] = os.environ) -> Asker:
    """Questions to the task's model. Where it can not be opened the session goes on without it, and says why.

    Args:
        folder: where the archive goes.
    """
    assert task.model is not None
    past = tried(model_calls_of(writer.store, writer.session_id))
    try:
        model = open_model(task, folder, writer, environ=environ)
    except ModelError as error:
        with writer.writing() as connection:
            writer.say(connection, [Line(step="session", text=f"the session goes on without its model: {error}")])
        return Asker(Unopened(task.model.name, error), asking(task.model), past=past, now=writer.store.clock)
    return Asker(model, asking(task.model), judged=model, past=past, now=writer.store.clock)


def tried(calls: Iterable[ModelCallView]) -> list[Tried]:
    """What became of a session's calls, as far as it says something of the rungs; those that were cut off do not."""
    found = []
    for call in calls:
        outcome = _outcome(call.outcome)
        if outcome is not None and call.rung in set(Rung):
            found.append(Tried(rung=Rung(call.rung), outcome=outcome, at=call.at))
    return found


def _outcome(word: str) -> Outcome | Trouble | None:
    if word in set(Outcome):
        return Outcome(word)
    return Trouble(word) if word in set(Trouble) else None
