"""The agent's API in a process of its own, as `nightlab up` has it, and a browser."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agent.store.fenced import FencedWriter, Line
from agent.store.record import SessionRecord
from agent.store.store import AgentStore
from agent.task import Task
from agent.web.address import url_of
from agent.web.keys import open_keys
from agent.web.page_files import BUILT, INDEX
from bench.figure import Unavailable

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SERVE = (
    "import sys, pathlib; from agent.web.serving import ApiServer; "
    "server = ApiServer(pathlib.Path(sys.argv[1])); server.start(); print(server.url, flush=True); "
    "sys.stdin.read(); server.stop()"
)
QUIET = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    url: str
    token: str
    home: Path
    pid: int
    store: AgentStore
    record: SessionRecord
    """Of session s1, which no process works on."""

    def say(self, text: str) -> None:
        """One line of activity of the session, durable when this returns."""
        self.record.say([Line(step="assess", text=text)])


@contextmanager
def served(home: Path) -> Iterator[subprocess.Popen[str]]:
    """The process; its address and tokens are in the home, as ever."""
    command = [sys.executable, "-c", SERVE, str(home)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        if not process.stdout.readline():
            raise RuntimeError("the agent's API did not start")
        yield process
    finally:
        process.communicate(timeout=30)


@contextmanager
def agent_service() -> Iterator[Service]:
    """Over a home with one session."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        store = AgentStore.open(home)
        store.create_session(_task())
        record = SessionRecord(FencedWriter(store, "s1", store.claim("s1", 1)))
        try:
            with served(home) as process:
                url = url_of(home, process.pid)
                assert url is not None
                token = open_keys(home).owner_token
                yield Service(url=url, token=token, home=home, pid=process.pid, store=store, record=record)
        finally:
            store.close()


@contextmanager
def browser() -> Iterator[Browser]:
    """
    Raises:
        Unavailable: there is no Chromium, or no page to look at.
    """
    chromium = shutil.which("chromium")
    if chromium is None:
        raise Unavailable("no Chromium here; on Debian: apt install chromium")
    if not (BUILT / INDEX).is_file():
        raise Unavailable("the web page is not built; make web")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=list(QUIET))
        yield started
        started.close()


def _task() -> Task:
    return Task.model_validate(
        {
            "task": "bench",
            "objective": {"metric": "score", "direction": "maximize"},
            "job": {"command": "train"},
            "space": {"lr": {"type": "float", "low": 1e-5, "high": 1e-1, "log": True, "default": 1e-3}},
            "budgets": {"trials": 10},
        }
    )
