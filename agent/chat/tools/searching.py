"""Looking for words: in chats, and in the trials of all sessions."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from agent.chat.entry import EntryKind
from agent.chat.tool import Desk, Result, Slash
from agent.store.chats import ChatStore

from .made import Reads
from .showing import line, result, table
from .words import Arguments, Words

N_CHATS = 10
N_FOUND = 30
_AROUND = 80
"""Characters shown on each side of the first word."""


class ForWords(Arguments):
    words: str = Field(description="All of them have to stand in what was said or replied.", max_length=200)


def _search(desk: Desk, arguments: ForWords) -> Result:
    words = arguments.words.lower().split()
    chats = ChatStore(desk.store)
    rows: list[tuple[str, int, str, str]] = []
    for chat in sorted(chats.chats(search=arguments.words, limit=N_CHATS), key=lambda one: one.chat_id != desk.chat_id):
        for entry in reversed(chats.entries(chat.chat_id)):
            is_word = entry.kind in (EntryKind.SAID, EntryKind.REPLY) and not entry.text.startswith("/search ")
            if is_word and all(word in entry.text.lower() for word in words):
                rows.append((chat.chat_id, entry.number, entry.by, _around(entry.text, words)))
    if not rows:
        return result(f"nobody has said {line(arguments.words)!r} in a chat")
    shown = f", {N_FOUND} are shown" if len(rows) > N_FOUND else ""
    return result(f"{len(rows)} entries{shown}", table=table(("chat", "entry", "by", "text"), rows[:N_FOUND]))


def _around(text: str, words: list[str]) -> str:
    at = text.lower().find(words[0]) if words else 0
    start, end = max(at - _AROUND, 0), at + _AROUND
    return f"{'...' if start else ''}{text[start:end]}{'...' if end < len(text) else ''}"


def _words(words: Words) -> dict[str, Any]:
    if not words:
        raise ValueError("WORDS are missing")
    return {"words": " ".join(words)}


TOOLS = (
    Reads(
        name="search_chat",
        description="What was said and replied in this chat and in others, by words, however long ago.",
        arguments=ForWords,
        slash=Slash(name="search", usage="/search WORDS", summary="what was said in chats", parse=_words),
        look=_search,
    ),
)
