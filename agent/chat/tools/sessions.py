"""Tools over whole sessions: which there are, and to stop one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from agent.chat.entry import Table
from agent.chat.grammar import without_values
from agent.chat.tool import Desk, Foreseen, Result, Slash
from agent.store.store import SessionNotFound
from agent.tools.errors import FixAndRetry

N_ROWS = 20


class Nothing(BaseModel):
    model_config = ConfigDict(extra="forbid")


class OfSession(BaseModel):
    model_config = ConfigDict(extra="forbid")
    session: str | None = Field(default=None, max_length=100, description="Id; left out: the chat's own session.")


class Sessions:
    name = "list_sessions"
    description = "The newest research sessions: state, number of trials, what was found."
    arguments = Nothing
    slash = Slash(name="sessions", usage="/sessions", summary="the newest sessions", parse=without_values)
    acts = False

    def read(self, desk: Desk, _arguments: Nothing) -> Result:
        found = desk.store.sessions()
        rows = tuple(
            (one.session_id, one.task_name, one.state.value, one.n_trials, one.result.sentence if one.result else None)
            for one in found[:N_ROWS]
        )
        table = Table(columns=("session", "task", "state", "trials", "found"), rows=rows)
        return Result(text=f"{len(found)} sessions" if found else "there is no session yet", table=table)

    def foresee(self, desk: Desk, arguments: Nothing) -> Foreseen:
        raise NotImplementedError

    def act(self, desk: Desk, arguments: Nothing, by: str) -> Result:
        raise NotImplementedError


class Stop:
    name = "stop_session"
    description = "Stop a session in order: queued jobs are asked back, running ones finish."
    arguments = OfSession
    acts = True

    @property
    def slash(self) -> Slash:
        return Slash(name="stop", usage="/stop [SESSION]", summary="stop a session in order", parse=_session)

    def read(self, desk: Desk, arguments: OfSession) -> Result:
        raise NotImplementedError

    def foresee(self, desk: Desk, arguments: OfSession) -> Foreseen:
        session = _known(desk, arguments)
        return Foreseen(what=f"stop session {session}", asks=True, why="it ends work that is under way")

    def act(self, desk: Desk, arguments: OfSession, by: str) -> Result:
        done = desk.store.request_stop(_known(desk, arguments), by=by)
        return Result(text=f"session {done.session_id} is {done.state.value}")


def _session(words: Sequence[str]) -> dict[str, Any]:
    if len(words) > 1:
        raise ValueError(f"{words[1]!r} is too much")
    return {"session": words[0]} if words else {}


def _known(desk: Desk, arguments: OfSession) -> str:
    wanted = arguments.session or desk.session_id
    if wanted is None:
        raise FixAndRetry("this chat is about no session; name one", code="no_session")
    try:
        return desk.store.session(wanted).session_id
    except SessionNotFound as error:
        raise FixAndRetry(str(error), code="unknown_session") from error
