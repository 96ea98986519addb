"""The model of a session as something that can be asked: with its accounts, and on the rung where it stood before."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from agent.llm.chat import ModelError
from agent.llm.ladder import Asker, asking
from agent.llm.opening import open_model
from agent.llm.standing import tried
from agent.store.calls import CallBook, model_calls_of
from agent.store.fenced import FencedWriter, Line
from agent.task import Task


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
    calls = model_calls_of(writer.store, writer.session_id)
    past = [one for call in calls if (one := tried(call.rung, call.outcome, call.at)) is not None]
    took_s = [call.took_s for call in calls]
    return Asker(model, asking(task.model), judged=model, past=past, took_s=took_s, now=writer.store.clock)
