"""Chats over HTTP: what was said, saying more, answering questions, and the stream of one chat."""

from __future__ import annotations

import asyncio
import getpass
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query, Request
from pydantic import BaseModel
from starlette.responses import StreamingResponse

from agent.chat.entry import AnswerPart, Entry, Verdict
from agent.chat.grammar import slashes
from agent.chat.hub import LetGo, Text, TooManyReaders
from agent.chat.talk import Talk
from agent.store.chats import AnsweredBefore, Chat, ChatNotFound, ChatStore, TurnUnderWay
from agent.store.store import AgentStore, SessionNotFound
from agent.web.chat_wire import Approval, ChatStreamEvents, ChatView, NewChat, Said, SlashView, TextPiece
from agent.web.envelope import SAID_OF_REFUSALS
from agent.web.events import HELLO, KEEP_ALIVE_S, SIGN_OF_LIFE
from agent.web.routes import After, Limit, Store, sequence_number
from agent.web.wire import Page, Wish
from runtime_client.doors.refusal import refused
from runtime_client.models import Envelope, ErrorKind

router = APIRouter(prefix="/v1", responses=SAID_OF_REFUSALS)
PAGE = 500


def _talk(request: Request) -> Talk:
    found: Talk = request.app.state.talk
    return found


TalkHere = Annotated[Talk, Depends(_talk)]
MAX_NUMBER = 2**31 - 1


@router.get("/slash")
def slash(talk: TalkHere) -> Envelope[tuple[SlashView, ...]]:
    """The commands that a person may type, by name."""
    found = slashes(talk.tools)
    return Envelope(data=tuple(SlashView(name=one.name, usage=one.usage, summary=one.summary) for one in found))


@router.get("/chats")
def chats(
    store: Store,
    talk: TalkHere,
    session_id: str | None = None,
    search: Annotated[str | None, Query(max_length=200)] = None,
    limit: Limit = 100,
) -> Envelope[tuple[ChatView, ...]]:
    """Chats, the ones spoken in last first; `search`: words in their titles, or in what was said and replied."""
    found = ChatStore(store).chats(session_id, search=search, limit=limit)
    return Envelope(data=tuple(_view(one, talk) for one in found))


@router.post("/chats")
def make(store: Store, talk: TalkHere, wish: NewChat) -> Envelope[ChatView]:
    """A new chat, about a session or about none."""
    try:
        made = ChatStore(store).make(wish.session_id, title=wish.title, by=wish.by or getpass.getuser())
    except SessionNotFound as error:
        raise refused(ErrorKind.NOT_FOUND, "unknown_session", str(error)) from error
    return Envelope(data=_view(made, talk))


@router.get("/chats/{chat_id}")
def chat(store: Store, talk: TalkHere, chat_id: str) -> Envelope[ChatView]:
    """One chat and its state."""
    return Envelope(data=_view(_known(store, chat_id), talk))


@router.get("/chats/{chat_id}/entries")
def entries(store: Store, chat_id: str, after: After = 0, limit: Limit = 100) -> Envelope[Page[Entry]]:
    """A chat's entries beyond a number, oldest first."""
    _known(store, chat_id)
    found = ChatStore(store).entries(chat_id, min(after, MAX_NUMBER), limit + 1)
    page = tuple(found[:limit])
    return Envelope(data=Page(items=page, next_after=page[-1].number if len(found) > limit else None))


@router.post("/chats/{chat_id}/say")
def say(store: Store, talk: TalkHere, chat_id: str, wish: Said) -> Envelope[Entry]:
    """Say something; the answer comes as entries. Refused while a turn is under way (409)."""
    before = _known(store, chat_id).n_entries
    try:
        said = ChatStore(store).say(chat_id, wish.text, by=wish.by or getpass.getuser(), key=wish.key)
    except TurnUnderWay as error:
        raise refused(ErrorKind.CONFLICT, "turn_under_way", str(error)) from error
    if said.number > before:
        talk.begin(chat_id)
    return Envelope(data=said)


@router.post("/chats/{chat_id}/stop")
def stop(store: Store, talk: TalkHere, chat_id: str, wish: Wish) -> Envelope[ChatView]:
    """End the turn under way; what was done stays done. Where there is none, nothing changes."""
    _known(store, chat_id)
    talk.stop(chat_id, wish.by or getpass.getuser())
    return Envelope(data=_view(_known(store, chat_id), talk))


@router.post("/chats/{chat_id}/approvals/{number}")
def approval(store: Store, talk: TalkHere, chat_id: str, number: int, wish: Approval) -> Envelope[Entry]:
    """Answer what an entry asks. The first answer counts; the same again from the same person changes nothing."""
    by, verdict = wish.by or getpass.getuser(), Verdict(wish.answer)
    try:
        said = ChatStore(store).answer(chat_id, min(number, MAX_NUMBER), verdict, by=by, note=wish.note)
    except ChatNotFound as error:
        raise refused(ErrorKind.NOT_FOUND, "unknown_question", str(error)) from error
    except AnsweredBefore as error:
        counts = error.entry.part
        assert isinstance(counts, AnswerPart)
        if counts.answer is Verdict.EXPIRED:
            talk.answered(chat_id)
            raise refused(ErrorKind.CONFLICT, "expired", str(error)) from error
        if (counts.answer, error.entry.by, counts.note) != (verdict, by, wish.note):
            raise refused(ErrorKind.CONFLICT, "answered_before", str(error)) from error
        return Envelope(data=error.entry)
    talk.answered(chat_id)
    return Envelope(data=said)


@router.get(
    "/chats/{chat_id}/stream",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {}}, "model": ChatStreamEvents, "description": "events"}},
)
async def stream(
    request: Request,
    chat_id: str,
    after: After = 0,
    last_event_id: Annotated[str | None, Header()] = None,
) -> StreamingResponse:
    """Server-sent events: `entry` (its number is the event's id), `text` of the reply being written, `state`."""
    store: AgentStore = request.app.state.store
    await asyncio.to_thread(_known, store, chat_id)
    if last_event_id is not None and last_event_id.strip():
        after = sequence_number(last_event_id.strip())
    talk: Talk = request.app.state.talk
    try:
        talk.hub.admit()
    except TooManyReaders as error:
        raise refused(ErrorKind.UNAVAILABLE, "too_many_streams", str(error)) from error
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    pieces = chat_stream(ChatStore(store), talk, chat_id, after=min(after, MAX_NUMBER))
    return StreamingResponse(pieces, media_type="text/event-stream", headers=headers)


async def chat_stream(
    chats: ChatStore, talk: Talk, chat_id: str, *, after: int, keep_alive_s: float = KEEP_ALIVE_S
) -> AsyncIterator[bytes]:
    """Entries beyond `after`, the reply that is being written, and the state, each as it comes."""
    with talk.hub.reading(chat_id) as reader:
        yield HELLO
        seq, is_news = after, True
        while True:
            if is_news:
                while found := await asyncio.to_thread(chats.entries, chat_id, seq, PAGE):
                    seq = found[-1].number
                    yield b"".join(_event("entry", one, one.number) for one in found)
                view = await asyncio.to_thread(lambda: _view(chats.chat(chat_id), talk))
                yield _event("state", view)
            try:
                async with asyncio.timeout(keep_alive_s):
                    piece = await reader.pieces.get()
            except TimeoutError:
                yield SIGN_OF_LIFE
                is_news = False
                continue
            if isinstance(piece, LetGo):
                return
            is_news = not isinstance(piece, Text)
            if isinstance(piece, Text):
                yield _event("text", TextPiece(offset=piece.offset, text=piece.text))


def _event(kind: str, data: BaseModel, number: int | None = None) -> bytes:
    head = "" if number is None else f"id: {number}\n"
    return f"{head}event: {kind}\ndata: {data.model_dump_json()}\n\n".encode()


def _view(chat: Chat, talk: Talk) -> ChatView:
    told = {name: getattr(chat, name) for name in ChatView.model_fields if name != "model"}
    return ChatView(**told, model=talk.model_of(chat))


def _known(store: AgentStore, chat_id: str) -> Chat:
    try:
        return ChatStore(store).chat(chat_id)
    except ChatNotFound as error:
        raise refused(ErrorKind.NOT_FOUND, "unknown_chat", str(error)) from error
