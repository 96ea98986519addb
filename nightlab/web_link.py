"""Where the web page is, and the link that opens it: its token stands behind `#`, which browsers send to nobody."""

from __future__ import annotations

import html
import os
import time
from pathlib import Path
from urllib.parse import quote

from agent.web.address import url_of
from nightlab.failure import unreachable
from nightlab.services.control import is_up
from nightlab.services.programs import AGENT
from nightlab.services.settings import ServiceFiles
from nightlab.services.state import SupervisorState, read_state

OPENING_FILE = "agent-page.html"
WAIT_S = 15.0
"""For the agent service, which comes up behind the runtime."""


def agent_url(home: Path, state: SupervisorState | None) -> str | None:
    """None: the agent service of this home does not run, or has not said yet where it is."""
    known = None if state is None else state.services.get(AGENT)
    return None if known is None else url_of(home, known.pid)


def await_agent_url(home: Path, *, wait_s: float = WAIT_S) -> str:
    """
    Raises:
        Failure: nothing runs for this home, or the agent service does not come up.
    """
    deadline = time.monotonic() + wait_s
    while is_up(home):
        found = agent_url(home, read_state(ServiceFiles(home)))
        if found is not None:
            return found
        if time.monotonic() > deadline:
            logs = ServiceFiles(home).logs
            raise unreachable(f"the agent service does not say where it is; its log in {logs} says why")
        time.sleep(0.1)
    raise unreachable(f"nightlab is not up for {home}, and the agent service neither; start it with: nightlab up")


def link(url: str, path: str, token: str) -> str:
    return f"{url}{path}#token={token}"


def session_path(session_id: str | None) -> str:
    return "/" if session_id is None else f"/sessions/{quote(session_id, safe='')}"


def opening_file(home: Path, target: str) -> Path:
    """A file of the owner's alone that leads a browser to a link: what a program is started with, others can see."""
    file = home / OPENING_FILE
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as opened:
        opened.write(f'<!doctype html><meta http-equiv="refresh" content="0; url={html.escape(target)}">\n')
    draft.replace(file)
    return file
