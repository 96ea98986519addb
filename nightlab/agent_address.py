"""Where the agent service of a home answers, with the owner's token, for commands that speak to it over HTTP."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from agent.web.keys import OWNER_FILE

from .failure import wrong_use
from .web_link import await_agent_url


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentAddress:
    url: str
    token: str


def agent_address(home: Path, *, wait_s: float) -> AgentAddress:
    """
    Args:
        wait_s: for so long for a service that comes up, as behind `nightlab up`.

    Raises:
        Failure: the service is not up, or the token can not be read.
    """
    url = await_agent_url(home, wait_s=wait_s)
    try:
        token = (home / OWNER_FILE).read_text(encoding="utf-8").strip()
    except OSError as error:
        said = f"the owner's token {home / OWNER_FILE} can not be read: {error.strerror}; run this as who owns it"
        raise wrong_use(said, code="no_token") from error
    return AgentAddress(url=url, token=token)
