"""Chats as rows: `ChatStore` for everybody who reads, speaks and answers, and for the turn that is worked on.

Entries are only ever added, each in one transaction with the chat's row locked, so their numbers have no gaps, and the
first answer to a question is the only one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from agent.chat.entry import (
    AnswerPart,
    AskPart,
    ChatState,
    Content,
    Entry,
    EntryKind,
    NothingPart,
    Verdict,
    state_of,
)
from agent.store.schema import writing
from agent.store.store import AgentStore
from agent.store.tables import chat_entries, chats

MOST_CHARACTERS = 20_000
"""Of what a person says at once."""
MOST_ENTRY_CHARACTERS = 200_000
TITLE_CHARACTERS = 80
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class ChatNotFound(Exception):
    """There is no chat of this id, or no such entry in it."""


class TurnUnderWay(Exception):
    """Something can be said when the turn has ended."""


class AnsweredBefore(Exception):
    """The first answer counts."""

    def __init__(self, message: str, entry: Entry) -> None:
        super().__init__(message)
        self.entry = entry
        """The answer that counts."""


class TurnOver(Exception):
    """The turn was ended from outside: nothing is added to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat:
    chat_id: str
    session_id: str | None
    """None: it is about no session in particular."""
    title: str
    state: ChatState
    n_entries: int
    created_at: float
    created_by: str
    updated_at: float


class ChatStore:
    def __init__(self, store: AgentStore) -> None:
        self._store = store

    def make(self, session_id: str | None, *, title: str = "", by: str) -> Chat:
        """A new chat.

        Raises:
            SessionNotFound: as `AgentStore.session`.
        """
        if session_id is not None:
            self._store.session(session_id)
        with writing(self._store.engine) as connection:
            if connection.dialect.name != "sqlite":
                connection.execute(sa.text("LOCK TABLE chats IN EXCLUSIVE MODE"))
            number = (connection.execute(sa.select(sa.func.max(chats.c.number))).scalar() or 0) + 1
            now = self._store.clock()
            values = {"chat_id": f"c{number}", "number": number, "session_id": session_id, "title": title}
            made = {**values, "created_at": now, "created_by": by, "updated_at": now, "n_entries": 0}
            connection.execute(sa.insert(chats).values(**made))
        return self.chat(f"c{number}")

    def chat(self, chat_id: str) -> Chat:
        """
        Raises:
            ChatNotFound: the message says how to find one.
        """
        with self._store.engine.connect() as connection:
            row = connection.execute(sa.select(chats).where(chats.c.chat_id == chat_id)).mappings().first()
            if row is None:
                raise ChatNotFound(f"there is no chat {chat_id!r}; nightlab chat --list shows them")
            return _chat(row, _last(connection, chat_id, row["n_entries"]))

    def chats(self, session_id: str | None = None, *, search: str | None = None, limit: int = 100) -> list[Chat]:
        """The ones spoken in last, first.

        Args:
            search: words that stand, in whatever case, in a chat's title or in what was said or replied in it.
        """
        query = sa.select(chats).order_by(chats.c.updated_at.desc(), chats.c.number.desc()).limit(limit)
        if session_id is not None:
            query = query.where(chats.c.session_id == session_id)
        for word in (search or "").split():
            pattern = "%" + word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
            spoken = (EntryKind.SAID.value, EntryKind.REPLY.value)
            entry = sa.select(chat_entries.c.chat_id).where(
                chat_entries.c.kind.in_(spoken), chat_entries.c.text.ilike(pattern, escape="\\")
            )
            query = query.where(sa.or_(chats.c.title.ilike(pattern, escape="\\"), chats.c.chat_id.in_(entry)))
        with self._store.engine.connect() as connection:
            rows = connection.execute(query).mappings().all()
            return [_chat(row, _last(connection, row["chat_id"], row["n_entries"])) for row in rows]

    def unfinished(self) -> list[Chat]:
        """Chats with a turn that works or waits for an answer."""
        last = sa.and_(chat_entries.c.chat_id == chats.c.chat_id, chat_entries.c.number == chats.c.n_entries)
        query = sa.select(chats).join(chat_entries, last).where(chat_entries.c.ends_turn.is_(False))
        with self._store.engine.connect() as connection:
            rows = connection.execute(query.order_by(chats.c.number)).mappings().all()
            return [_chat(row, _last(connection, row["chat_id"], row["n_entries"])) for row in rows]

    def entries(self, chat_id: str, after: int = 0, limit: int | None = None) -> list[Entry]:
        """Entries beyond a number, oldest first.

        Raises:
            ChatNotFound: as `chat`.
        """
        self.chat(chat_id)
        query = sa.select(chat_entries).where(chat_entries.c.chat_id == chat_id, chat_entries.c.number > after)
        with self._store.engine.connect() as connection:
            found = connection.execute(query.order_by(chat_entries.c.number).limit(limit)).mappings()
            return [_entry(row) for row in found]

    def say(self, chat_id: str, text: str, *, by: str, key: str | None = None) -> Entry:
        """What a person says; it begins a turn. The same key again: it was said already.

        Raises:
            ChatNotFound: as `chat`.
            TurnUnderWay: a turn works, or waits for an answer.
        """
        with writing(self._store.engine) as connection:
            row = _locked(connection, chat_id)
            if key is not None:
                mine = sa.and_(chat_entries.c.chat_id == chat_id, chat_entries.c.key == key)
                before = connection.execute(sa.select(chat_entries).where(mine)).mappings().first()
                if before is not None:
                    return _entry(before)
            last = _last(connection, chat_id, row["n_entries"])
            if state_of(last) is not ChatState.IDLE:
                waits = state_of(last) is ChatState.ASKING
                what = f"answer its question ({last[-1].number}) first" if waits else "wait for its end"
                raise TurnUnderWay(f"chat {chat_id} is at work on what was said before; {what}, or stop it")
            if not row["title"]:
                title = " ".join(storable(text).split())[:TITLE_CHARACTERS]
                connection.execute(sa.update(chats).where(chats.c.chat_id == chat_id).values(title=title))
            return self._add(connection, row, EntryKind.SAID, NothingPart(), text, by=by, key=key)

    def add(
        self,
        chat_id: str,
        kind: EntryKind,
        part: Content,
        text: str,
        *,
        by: str = "nightlab",
        ends_turn: bool = False,
        said: int | None = None,
    ) -> Entry:
        """One more line of the turn under way.

        Args:
            said: number of the entry that began the turn which is meant; None: whichever is under way.

        Raises:
            ChatNotFound: as `chat`.
            TurnOver: somebody has stopped it meanwhile.
        """
        with writing(self._store.engine) as connection:
            row = _locked(connection, chat_id)
            if state_of(_last(connection, chat_id, row["n_entries"])) is ChatState.IDLE:
                raise TurnOver(f"the turn of chat {chat_id} was ended")
            if said is not None and _newest_said(connection, chat_id) != said:
                raise TurnOver(f"the turn of chat {chat_id} that entry {said} began was ended")
            return self._add(connection, row, kind, part, text, by=by, ends_turn=ends_turn)

    def stop(self, chat_id: str, *, by: str, text: str) -> Entry | None:
        """End the turn under way; None: there is none.

        Raises:
            ChatNotFound: as `chat`.
        """
        with writing(self._store.engine) as connection:
            row = _locked(connection, chat_id)
            last = _last(connection, chat_id, row["n_entries"])
            if state_of(last) is ChatState.IDLE:
                return None
            if state_of(last) is ChatState.ASKING:
                part = AnswerPart(ask=last[-1].number, answer=Verdict.DENY)
                self._add(connection, row, EntryKind.ANSWER, part, text, by=by, answers=last[-1].number)
                row = _locked(connection, chat_id)
            return self._add(connection, row, EntryKind.STOPPED, NothingPart(), text, by=by, ends_turn=True)

    def answer(self, chat_id: str, ask: int, answer: Verdict, *, by: str, note: str | None = None) -> Entry:
        """Answer what entry `ask` asks. From its deadline on the answer is `EXPIRED`, whatever is said.

        Raises:
            ChatNotFound: no such chat, or entry `ask` asks nothing.
            AnsweredBefore: with the answer that counts; also where this call found the deadline passed.
        """
        with writing(self._store.engine) as connection:
            row = _locked(connection, chat_id)
            mine = chat_entries.c.chat_id == chat_id
            asked = connection.execute(sa.select(chat_entries).where(mine, chat_entries.c.number == ask)).mappings()
            found = asked.first()
            if found is None or found["kind"] != EntryKind.ASK.value:
                raise ChatNotFound(f"entry {ask} of chat {chat_id} asks nothing")
            before = connection.execute(sa.select(chat_entries).where(mine, chat_entries.c.answers == ask)).mappings()
            said = before.first()
            if said is None:
                is_late = self._store.clock() >= AskPart.model_validate(found["content"]).expires_at
                counts = Verdict.EXPIRED if is_late else answer
                part = AnswerPart(ask=ask, answer=counts, note=None if is_late else note)
                who = "nightlab" if is_late else by
                text = "nobody answered in time" if is_late else (note or "")
                made = self._add(connection, row, EntryKind.ANSWER, part, text, by=who, answers=ask)
                if counts is answer:
                    return made
            else:
                made = _entry(said)
        verdict = AnswerPart.model_validate(made.content).answer
        words = {
            Verdict.APPROVE: "approved",
            Verdict.DENY: "denied",
            Verdict.EXPIRED: "expired: nobody answered in time",
        }
        raise AnsweredBefore(
            f"question {ask} of chat {chat_id} was answered before: {words[verdict]} ({made.by})", made
        )

    def _add(
        self,
        connection: sa.Connection,
        row: sa.RowMapping,
        kind: EntryKind,
        part: Content,
        text: str,
        *,
        by: str,
        ends_turn: bool = False,
        key: str | None = None,
        answers: int | None = None,
    ) -> Entry:
        number, now = row["n_entries"] + 1, self._store.clock()
        values: dict[str, Any] = {
            "chat_id": row["chat_id"],
            "number": number,
            "at": now,
            "kind": kind.value,
            "said_by": storable(by[:100]),
            "text": storable(text[:MOST_ENTRY_CHARACTERS]),
            "ends_turn": ends_turn,
            "content": _storable(part.model_dump(mode="json")),
            "key": key,
            "answers": answers,
        }
        made = connection.execute(sa.insert(chat_entries).values(**values).returning(chat_entries)).mappings().one()
        mine = sa.update(chats).where(chats.c.chat_id == row["chat_id"])
        connection.execute(mine.values(n_entries=number, updated_at=now))
        return _entry(made)


class TurnBook:
    """One turn, for whoever works on it: what is added once it was ended is lost, also when another one has begun."""

    def __init__(self, chats: ChatStore, chat_id: str, said: int, *, is_closing: Callable[[], bool] = bool) -> None:
        """
        Args:
            said: number of the entry that began it.
            is_closing: the service leaves: nothing more is begun, but what was done is still added.
        """
        self._chats, self.chat_id, self._said, self._is_closing = chats, chat_id, said, is_closing

    def entries(self) -> list[Entry]:
        """Of this turn alone.

        Raises:
            TurnOver: the service leaves.
        """
        if self._is_closing():
            raise TurnOver(f"the service leaves; the turn of chat {self.chat_id} is ended by the next one")
        found = self._chats.entries(self.chat_id, self._said - 1)
        next_one = (at for at, one in enumerate(found) if at > 0 and one.kind is EntryKind.SAID)
        return found[: next(next_one, None)]

    def entries_so_far(self) -> list[Entry]:
        """Of the whole chat, up to this turn."""
        return [*self._chats.entries(self.chat_id, 0, self._said - 1), *self.entries()]

    def add(self, kind: EntryKind, part: Content, text: str, *, by: str = "nightlab", ends_turn: bool = False) -> Entry:
        """
        Raises:
            TurnOver: somebody has stopped it.
        """
        return self._chats.add(self.chat_id, kind, part, text, by=by, ends_turn=ends_turn, said=self._said)

    def check(self) -> None:
        """
        Raises:
            TurnOver: somebody has stopped it.
        """
        if self.entries()[-1].ends_turn:
            raise TurnOver(f"the turn of chat {self.chat_id} that entry {self._said} began was ended")


def _newest_said(connection: sa.Connection, chat_id: str) -> int | None:
    mine = sa.and_(chat_entries.c.chat_id == chat_id, chat_entries.c.kind == EntryKind.SAID.value)
    return connection.execute(sa.select(sa.func.max(chat_entries.c.number)).where(mine)).scalar()


def storable(text: str) -> str:
    """Without signs that neither databases nor UTF-8 take; models and people send them."""
    return _UNSTORABLE.sub("\ufffd", text)


def _storable(value: Any) -> Any:
    """The same of all texts inside, and without numbers that are none."""
    match value:
        case str():
            return storable(value)
        case dict():
            return {_storable(name): _storable(inner) for name, inner in value.items()}
        case list():
            return [_storable(inner) for inner in value]
        case float() if not math.isfinite(value):
            return None
        case _:
            return value


def _locked(connection: sa.Connection, chat_id: str) -> sa.RowMapping:
    query = sa.select(chats).where(chats.c.chat_id == chat_id).with_for_update()
    row = connection.execute(query).mappings().first()
    if row is None:
        raise ChatNotFound(f"there is no chat {chat_id!r}; nightlab chat --list shows them")
    return row


def _last(connection: sa.Connection, chat_id: str, number: int) -> Sequence[Entry]:
    mine = sa.and_(chat_entries.c.chat_id == chat_id, chat_entries.c.number == number)
    return [_entry(row) for row in connection.execute(sa.select(chat_entries).where(mine)).mappings()]


def _chat(row: sa.RowMapping, last: Sequence[Entry]) -> Chat:
    told = {name: row[name] for name in Chat.__dataclass_fields__ if name != "state"}
    return Chat(**told, state=state_of(last))


def _entry(row: sa.RowMapping) -> Entry:
    return Entry(
        number=row["number"],
        at=row["at"],
        kind=EntryKind(row["kind"]),
        by=row["said_by"],
        text=row["text"],
        ends_turn=row["ends_turn"],
        content=row["content"],
    )
