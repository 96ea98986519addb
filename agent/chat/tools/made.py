"""Tools as data: a tool that reads is one function, one that acts is two."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from agent.chat.tool import Desk, Foreseen, Result, Slash


@dataclass(frozen=True, slots=True, kw_only=True)
class Reads:
    """Implements `ChatTool`."""

    name: str
    description: str
    arguments: type[BaseModel]
    slash: Slash | None
    look: Callable[[Desk, Any], Result]

    @property
    def acts(self) -> bool:
        return False

    def read(self, desk: Desk, arguments: Any) -> Result:
        return self.look(desk, arguments)

    def foresee(self, desk: Desk, arguments: Any) -> Foreseen:
        raise AssertionError(f"{self.name} reads alone")

    def act(self, desk: Desk, arguments: Any, by: str) -> Result:
        raise AssertionError(f"{self.name} reads alone")


@dataclass(frozen=True, slots=True, kw_only=True)
class Acts:
    """Implements `ChatTool`."""

    name: str
    description: str
    arguments: type[BaseModel]
    slash: Slash | None
    ahead: Callable[[Desk, Any], Foreseen]
    """What it would do."""
    do: Callable[[Desk, Any, str], Result]

    @property
    def acts(self) -> bool:
        return True

    def read(self, desk: Desk, arguments: Any) -> Result:
        raise AssertionError(f"{self.name} acts")

    def foresee(self, desk: Desk, arguments: Any) -> Foreseen:
        return self.ahead(desk, arguments)

    def act(self, desk: Desk, arguments: Any, by: str) -> Result:
        return self.do(desk, arguments, by)
