"""The agent service's chats, over HTTP. Errors are those of the runtime's client, whose envelope it speaks."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx_sse
from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from agent.chat.entry import Entry
from agent.web.chat_wire import ChatView, SlashView, TextPiece
from nightlab.agent_address import AgentAddress, agent_address
from nightlab.chat.words import Ids
from nightlab.web_link import WAIT_S
from runtime_client.errors import ServerFault
from runtime_client.transport import Query, Transport

TIMEOUT_S = 20.0
SILENCE_S = 45.0
"""A sign of life comes every 15 s; after this long without one the connection is taken for dead."""
N_TRIALS = 500
"""Of a session, known for completion."""

Sent = Entry | TextPiece | ChatView
SENT: Mapping[str, type[Entry] | type[TextPiece] | type[ChatView]] = {
    "entry": Entry,
    "text": TextPiece,
    "state": ChatView,
}
"""By the name of the event."""
_SLASHES = TypeAdapter(tuple[SlashView, ...])
_CHATS = TypeAdapter(tuple[ChatView, ...])
_ENTRIES = TypeAdapter(tuple[Entry, ...])


class Door:
    """May be shared between threads."""

    def __init__(self, home: Path, *, by: str) -> None:
        """
        Args:
            by: in whose name things are said and answered.

        Raises:
            Failure: the service is not up.
        """
        self._home, self._by = home, by
        self._address = agent_address(home, wait_s=WAIT_S)
        self._transport = _connected(self._address)

    def close(self) -> None:
        self._transport.close()

    def look_again(self) -> None:
        """The service may have another address since it was started again.

        Raises:
            Failure: it is not up.
        """
        address = agent_address(self._home, wait_s=0.0)
        if address != self._address:  # requests under way keep the connection that they have
            self._address, self._transport = address, _connected(address)

    def slashes(self) -> tuple[SlashView, ...]:
        return _SLASHES.validate_python(self._read("/v1/slash"))

    def chats(self, session_id: str | None, *, search: str | None = None, limit: int = 50) -> tuple[ChatView, ...]:
        """The ones spoken in last, first."""
        query: dict[str, str | int] = {"limit": limit}
        query |= {} if session_id is None else {"session_id": session_id}
        query |= {} if search is None else {"search": search}
        return _CHATS.validate_python(self._read("/v1/chats", query))

    def make(self, session_id: str | None) -> ChatView:
        return ChatView.model_validate(self._send("/v1/chats", {"session_id": session_id, "by": self._by}))

    def chat(self, chat_id: str) -> ChatView:
        return ChatView.model_validate(self._read(f"/v1/chats/{_plain(chat_id)}"))

    def entries(self, chat_id: str, *, after: int, limit: int) -> tuple[Entry, ...]:
        query = {"after": after, "limit": limit}
        return _ENTRIES.validate_python(self._read(f"/v1/chats/{_plain(chat_id)}/entries", query)["items"])

    def say(self, chat_id: str, text: str) -> Entry:
        """Sent again where the connection is lost, said once."""
        said = {"text": _readable(text), "by": self._by, "key": uuid.uuid4().hex}
        return Entry.model_validate(self._send(f"/v1/chats/{_plain(chat_id)}/say", said, is_repeatable=True))

    def stop(self, chat_id: str) -> None:
        self._send(f"/v1/chats/{_plain(chat_id)}/stop", {"by": self._by}, is_repeatable=True)

    def answer(self, chat_id: str, number: int, *, is_yes: bool, note: str | None) -> Entry:
        """The same answer sent twice counts once."""
        said = {
            "answer": "approve" if is_yes else "deny",
            "note": None if note is None else _readable(note),
            "by": self._by,
        }
        path = f"/v1/chats/{_plain(chat_id)}/approvals/{number}"
        return Entry.model_validate(self._send(path, said, is_repeatable=True))

    def stream(self, chat_id: str, *, after: int) -> Iterator[Sent]:
        """What one connection brings, from the entry behind `after` on; ends when the service ends it."""
        headers = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
        path = f"/v1/chats/{_plain(chat_id)}/stream"
        with self._transport.stream(path, query={"after": after}, headers=headers, read_timeout_s=SILENCE_S) as answer:
            try:
                for message in httpx_sse.EventSource(answer).iter_sse():
                    if message.event in SENT:
                        yield SENT[message.event].model_validate_json(message.data)
            except (httpx_sse.SSEError, ValidationError) as error:
                raise ServerFault(f"the chat's stream is not understood: {error}", code="not_understood") from error

    def learn(self, ids: Ids, session_id: str | None) -> None:
        """Ids for completion: sessions, and the trials and jobs of one; without one, of the newest."""
        sessions = [str(one["session_id"]) for one in self._read("/v1/sessions")]
        ids.learn("session", sessions)
        wanted = session_id or (sessions[0] if sessions else None)
        if wanted is not None:
            page = self._read(f"/v1/sessions/{_plain(wanted)}/trials", {"limit": N_TRIALS})["items"]
            ids.learn("trial", [str(one["trial_id"]) for one in reversed(page)])
            ids.learn("job", [str(one["job_id"]) for one in reversed(page) if one["job_id"]])

    def _read(self, path: str, query: Query | None = None) -> Any:
        return self._transport.call("GET", path, query=query)

    def _send(self, path: str, body: Mapping[str, object], *, is_repeatable: bool = False) -> Any:
        return self._transport.call("POST", path, body=to_json(body), is_repeatable=is_repeatable)


def _connected(address: AgentAddress) -> Transport:
    return Transport(address.url, address.token, timeout_s=TIMEOUT_S)


def _plain(name: str) -> str:
    """A part of a path that stays one part, whatever was typed."""
    return quote(name, safe="") or "%20"


def _readable(text: str) -> str:
    """What was given in another encoding than the shell's says so by question marks, and can be sent."""
    return text.encode("utf-8", "replace").decode()
