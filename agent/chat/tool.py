"""What a tool of the chat is: the same for the model, which calls it by name, and for people, who type its command.

A tool reads, or it acts. One that acts foresees first what it would do and whether a person has to agree; nothing is
done by foreseeing. Errors are those of `agent.tools.errors`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from pydantic import BaseModel

from agent.chat.entry import Plot, Table, Victim
from agent.store.store import AgentStore
from runtime_client.protocol import Runtime

OpenRuntime = Callable[[], AbstractContextManager[Runtime]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """What the tools of one turn work with."""

    store: AgentStore
    home: Path
    runtime: OpenRuntime
    """
    Raises:
        RuntimeClientError: it is not up.
    """
    chat_id: str
    session_id: str | None
    """The session that the chat belongs to: meant where a command names none."""
    ask_above_device_minutes: float
    """What costs more is asked about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    text: str
    """For the model and for people. Untrusted."""
    table: Table | None = None
    plot: Plot | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreseen:
    what: str
    """What would be done, for a person: `cancel job 12 (train.py), which has run for 3 min`."""
    asks: bool
    """A person has to agree first."""
    why: str
    """Why one is asked; empty where nobody is."""
    device_seconds: float | None = None
    cost_usd: float | None = None
    victims: tuple[Victim, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Slash:
    """How a person says it: `/explain 42`."""

    name: str
    usage: str
    """`/explain JOB`."""
    summary: str
    """What it does, one line."""
    parse: Callable[[Sequence[str]], dict[str, Any]]
    """From the words behind the name to the tool's arguments.

    Raises:
        ValueError: they do not fit; the message says what is wrong.
    """


class ChatTool(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str:
        """For the model, a sentence or two."""
        ...

    @property
    def arguments(self) -> type[BaseModel]: ...
    @property
    def slash(self) -> Slash | None: ...
    @property
    def acts(self) -> bool:
        """False: it reads alone."""
        ...

    def read(self, desk: Desk, arguments: Any) -> Result:
        """
        Raises:
            ToolError: what is wrong, and what to do.
        """
        ...

    def foresee(self, desk: Desk, arguments: Any) -> Foreseen:
        """What it would do. Only of tools that act.

        Raises:
            ToolError: it can not be done.
        """
        ...

    def act(self, desk: Desk, arguments: Any, by: str) -> Result:
        """Do it, in the name of whoever agreed or said it.

        Raises:
            ToolError: it can not be done.
        """
        ...
