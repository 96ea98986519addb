"""What browser tests speak to: the agent's API in this process, and a watch over what a page does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import ConsoleMessage, Page, Request

from agent.store.store import AgentStore
from agent.web.keys import Keys
from agent.web.serving import ApiServer

Opens = Callable[..., Page]
Shoots = Callable[[Page, str], Path]


@dataclass(slots=True)
class AgentPage:
    """The agent's API in this process, and its home. Tests write to `store` what a session would."""

    home: Path
    store: AgentStore
    keys: Keys
    server: ApiServer

    @property
    def url(self) -> str:
        return self.server.url

    def link(self, path: str = "/", *, is_reader: bool = False) -> str:
        token = self.keys.reader_token if is_reader else self.keys.owner_token
        return f"{self.url}{path}#token={token}"

    def stop(self) -> None:
        self.server.stop()

    def start(self) -> None:
        """Again, after `stop`: at the same address."""
        self.server = ApiServer(self.home)
        self.server.start()


@dataclass
class Watch:
    """What a page did that no page of ours may do."""

    origin: str
    faults: list[str] = field(default_factory=list)
    allowed: list[str] = field(default_factory=list)
    """Parts of console errors that a test expects, such as those of a service that is down."""

    def request(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme != "data" and f"{parts.scheme}://{parts.netloc}" != self.origin:
            self.faults.append(f"a request to {request.url}")

    def console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.faults.append(f"{message.type}: {message.text}")

    def error(self, error: object) -> None:
        self.faults.append(f"uncaught: {error}")

    def check(self) -> None:
        left = [one for one in self.faults if not any(part in one for part in self.allowed)]
        assert not left, left
