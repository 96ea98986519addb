"""A session that has run, and the desk that tools of a chat work at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agent_worlds import World, a_task, a_world

from agent.chat.grammar import WrongUse, parse
from agent.chat.tool import ChatTool, Desk, Foreseen, Result
from agent.chat.tools import ALL
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


def a_finished_world(home: Path, **changes: Any) -> World:
    task = a_task(search={"use": ["random", "replicator"]}, idle={"replicate": False, "explore": False})
    world = a_world(home, **({"task": task} | changes))
    world.live()
    return world


def meant(line: str) -> tuple[ChatTool, Any]:
    """The tool of a command and its arguments."""
    found = parse(line)
    assert not isinstance(found, WrongUse), found.text
    tool, arguments = found
    return tool, tool.arguments.model_validate(arguments)


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
