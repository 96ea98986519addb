"""A session that has run, and the desk that tools of a chat work at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_worlds import World, a_task, a_world

from agent.chat import grammar
from agent.chat.tool import ChatTool, Desk, Foreseen, Result
from agent.chat.tools import ALL
from agent.waiting import DirectWaiter, Interest, Wake
from runtime_client.errors import Unreachable
from runtime_client.fake import FakeRuntime


@contextmanager
def away() -> Iterator[FakeRuntime]:
    raise Unreachable("no runtime is running", code="not_running", retryable=True)
    yield  # pragma: no cover


def a_desk(world: World, *, session_id: str | None = "s1", is_up: bool = True, **changes: Any) -> Desk:
    @contextmanager
    def opened() -> Iterator[FakeRuntime]:
        yield world.runtime

    given: dict[str, Any] = {
        "store": world.store,
        "home": world.home,
        "runtime": opened if is_up else away,
        "chat_id": "c1",
        "session_id": session_id,
        "ask_above_device_minutes": 10.0,
    }
    return Desk(**(given | changes))


@dataclass(frozen=True, slots=True)
class StopsTheSession:
    """Waits, and has the session stop once three of its trials have ended."""

    world: World
    inner: DirectWaiter

    def wait(self, interest: Interest) -> Wake:
        if self.world.store.n_ended_trials(self.world.session_id) >= 3:
            self.world.store.request_stop(self.world.session_id)
        return self.inner.wait(interest)

    def close(self) -> None:
        """Nothing to close."""


def a_stopped_world(home: Path) -> World:
    """A session that was stopped in the middle of its search."""
    world = a_world(home, task=a_task(search={"use": ["random"]}, idle={"replicate": False, "explore": False}))
    world.live(open_waiter=lambda runtime, since: StopsTheSession(world, DirectWaiter(runtime, since=since)))
    return world


def a_finished_world(home: Path, **changes: Any) -> World:
    task = a_task(search={"use": ["random", "replicator"]}, idle={"replicate": False, "explore": False})
    world = a_world(home, **({"task": task} | changes))
    world.live()
    return world


def meant(line: str) -> tuple[ChatTool, Any]:
    """The tool of a command and its arguments."""
    found = grammar.meant(line, ALL)
    return found.tool, found.arguments


def look(desk: Desk, line: str) -> Result:
    tool, arguments = meant(line)
    assert not tool.acts
    return tool.read(desk, arguments)


def ahead(desk: Desk, line: str) -> Foreseen:
    tool, arguments = meant(line)
    assert tool.acts
    return tool.foresee(desk, arguments)


def done(desk: Desk, line: str, by: str = "ann") -> Result:
    tool, arguments = meant(line)
    return tool.act(desk, arguments, by)


def cells(result: Result, column: str) -> list[Any]:
    assert result.table is not None
    at = result.table.columns.index(column)
    return [row[at] for row in result.table.rows]


def named(name: str, tools: Sequence[ChatTool] = ALL) -> ChatTool:
    return next(tool for tool in tools if tool.name == name)
