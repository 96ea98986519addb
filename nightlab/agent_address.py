"""Where the agent service of a home answers, and the owner's token, for commands that speak to it over HTTP."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from agent.web.address import url_of
from agent.web.keys import OWNER_FILE

from .failure import unreachable, wrong_use
from .services.control import is_up
from .services.programs import AGENT
from .services.settings import ServiceFiles
from .services.state import read_state


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentAddress:
    url: str
    token: str


def agent_address(home: Path) -> AgentAddress:
    """
    Raises:
        Failure: the service is not up, or the token can not be read.
    """
    url = agent_url(home)
    if url is None:
        raise unreachable(f"no agent service is up for {home}; start it with: nightlab up")
    try:
        token = (home / OWNER_FILE).read_text(encoding="utf-8").strip()
    except OSError as error:
        said = f"the owner's token {home / OWNER_FILE} can not be read: {error.strerror}; run this as who owns it"
        raise wrong_use(said, code="no_token") from error
    return AgentAddress(url=url, token=token)


def agent_url(home: Path) -> str | None:
    """None: it is not up, or has not said yet."""
    state = read_state(ServiceFiles(home)) if is_up(home) else None
    known = None if state is None else state.services.get(AGENT)
    return None if known is None else url_of(home, known.pid)
