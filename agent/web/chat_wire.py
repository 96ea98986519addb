"""What the API says of chats and takes from those who talk."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from agent.chat.entry import AnswerPart, AskPart, CallPart, ChatState, Entry, ReplyPart, ResultPart, TroublePart
from agent.store.chats import MOST_CHARACTERS, TITLE_CHARACTERS
from agent.web.wire import View, Wish


class ChatView(View):
    chat_id: str
    session_id: str | None
    """None: it is about no session in particular."""
    title: str
    """What was said first, where it was given none; empty: nothing was said yet."""
    state: ChatState
    n_entries: int
    created_at: float
    created_by: str
    updated_at: float
    model: str | None
    """Who answers; None: no model, only commands do."""


class NewChat(Wish):
    session_id: str | None = Field(default=None, max_length=100)
    title: str = Field(default="", max_length=TITLE_CHARACTERS)


class Said(Wish):
    text: str = Field(min_length=1, max_length=MOST_CHARACTERS)
    key: str | None = Field(default=None, min_length=1, max_length=100)
    """The client's own name for it: sent twice, it is said once."""


class Approval(Wish):
    answer: Literal["approve", "deny"]
    note: str | None = Field(default=None, max_length=2000)


class SlashView(View):
    name: str
    usage: str
    summary: str


class TextPiece(View):
    """Data of `event: text`: a piece of the reply that is being written."""

    offset: int
    """Characters before it; what a reader has beyond that is replaced."""
    text: str


class EntryContent(View):
    """What the `content` of an entry is, by its kind; kinds that are not here have none."""

    reply: ReplyPart
    call: CallPart
    result: ResultPart
    ask: AskPart
    answer: AnswerPart
    trouble: TroublePart


class ChatStreamEvents(View):
    """What the data of each kind of event of a chat's stream is."""

    entry: Entry
    content: EntryContent
    """No event: what stands in an entry."""
    text: TextPiece
    state: ChatView
