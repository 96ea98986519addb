"""The model of a session as something that can be asked: with its accounts, and on the rung where it stood before.

A new session goes on where the last one with the same model stood: it need not lose the same answers again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path

from agent.llm.chat import ModelError, Outcome, Trouble
from agent.llm.ladder import Asker, asking
from agent.llm.opening import open_model
from agent.llm.standing import Tried, tried
from agent.store.calls import CallBook, model_calls_of
from agent.store.fenced import FencedWriter, Line
from agent.store.store import AgentStore
from agent.store.views import ModelCallView
from agent.task import Model, Task

_N_SESSIONS = 20
"""Newest sessions in which the model is looked for."""
_OF_THE_RUNG = (Outcome.USED, Outcome.UNUSABLE, Trouble.REFUSED)


def open_asker(
    task: Task, writer: FencedWriter, *, folder: Path, until: ExitStack, running_device_seconds: Callable[[], float]
) -> Asker | None:
    """None: its address or key can not be used; the activity says what to change, and the session goes on without it.

    Calls that an earlier process of the session had under way when it ended count as lost from now on.

    Args:
        folder: where the archive of its calls goes.
        until: when it is closed, calls that are under way end.
        running_device_seconds: what trials in flight have used so far, for budgets of money.
    """
    assert task.model is not None
    CallBook(writer).close_open()
    try:
        model = open_model(task, folder, writer, running_device_seconds=running_device_seconds)
    except ModelError as error:
        with writer.writing() as connection:
            writer.say(connection, [Line(step="session", text=f"the session goes on without its model: {error}")])
        return None
    until.callback(model.close)
    before = calls_before(writer.store, writer.session_id, task.model)
    own = model_calls_of(writer.store, writer.session_id)
    past = [*rung_of(before), *_tried(own)]
    took_s = [call.took_s for call in (*before, *own)]
    return Asker(model, asking(task.model), judged=model, past=past, took_s=took_s, now=writer.store.clock)


def calls_before(store: AgentStore, session_id: str, model: Model) -> list[ModelCallView]:
    """Calls of the newest other session that asked the same model in the same way, the oldest first."""
    known = model.model_dump(include={"name", "base_url", "rung"})
    for session in [one for one in store.sessions() if one.session_id != session_id][:_N_SESSIONS]:
        said = json.loads(session.task_json).get("model") or {}
        if {key: said.get(key) for key in known} == known:
            calls = model_calls_of(store, session.session_id)
            if calls:
                return calls
    return []


def rung_of(calls: Iterable[ModelCallView]) -> list[Tried]:
    """What calls of an earlier session say about the rung; an endpoint that was silent then may answer now."""
    return [one for one in _tried(calls) if one.outcome in _OF_THE_RUNG]


def _tried(calls: Iterable[ModelCallView]) -> list[Tried]:
    return [one for call in calls if (one := tried(call.rung, call.outcome, call.at)) is not None]
