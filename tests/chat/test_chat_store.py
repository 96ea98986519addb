"""Chats as rows: numbers without gaps, one turn at a time, the first answer counts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.chat.entry import AnswerPart, AskPart, ChatState, EntryKind, NothingPart, ReplyPart, Verdict
from agent.store.chats import AnsweredBefore, ChatNotFound, ChatStore, TurnBook, TurnOver, TurnUnderWay
from agent.store.store import AgentStore

NOW = [1000.0]


@pytest.fixture
def chats(tmp_path: Path) -> Iterator[ChatStore]:
    NOW[0] = 1000.0
    store = AgentStore.open(tmp_path, clock=lambda: NOW[0])
    yield ChatStore(store)
    store.close()


def asking(chats: ChatStore) -> tuple[str, int]:
    chat = chats.make(None, by="ann")
    chats.say(chat.chat_id, "stop it", by="ann")
    part = AskPart(call_id="1", tool="stop_session", arguments={}, why="it ends work", expires_at=1600.0)
    return chat.chat_id, chats.add(chat.chat_id, EntryKind.ASK, part, "stop s1").number


def test_entries_have_numbers_without_gaps(chats: ChatStore) -> None:
    chat = chats.make(None, by="ann")
    assert (chat.chat_id, chat.state) == ("c1", ChatState.IDLE)
    chats.say("c1", "what  runs?", by="ann")
    assert chats.chat("c1").state is ChatState.WORKING
    chats.add("c1", EntryKind.REPLY, ReplyPart(), "nothing", by="m", ends_turn=True)
    chats.say("c1", "and now?", by="bob")
    assert [(one.number, one.kind.value, one.by) for one in chats.entries("c1")] == [
        (1, "said", "ann"),
        (2, "reply", "m"),
        (3, "said", "bob"),
    ]
    assert [one.number for one in chats.entries("c1", after=2)] == [3]
    assert chats.chat("c1").title == "what runs?"


def test_what_is_said_twice_with_one_key_is_said_once(chats: ChatStore) -> None:
    chats.make(None, by="ann")
    first = chats.say("c1", "hello", by="ann", key="k")
    assert chats.say("c1", "hello", by="ann", key="k") == first
    assert len(chats.entries("c1")) == 1


def test_one_turn_at_a_time(chats: ChatStore) -> None:
    chats.make(None, by="ann")
    chats.say("c1", "hello", by="ann")
    with pytest.raises(TurnUnderWay, match="wait for its end"):
        chats.say("c1", "hello?", by="bob")


def test_nothing_is_added_to_a_turn_that_was_stopped(chats: ChatStore) -> None:
    chats.make(None, by="ann")
    chats.say("c1", "hello", by="ann")
    assert chats.stop("c1", by="ann", text="ann stopped it") is not None
    assert chats.stop("c1", by="ann", text="ann stopped it") is None
    with pytest.raises(TurnOver):
        chats.add("c1", EntryKind.REPLY, ReplyPart(), "late", by="m", ends_turn=True)


def test_the_first_answer_counts(chats: ChatStore) -> None:
    chat_id, ask = asking(chats)
    assert chats.chat(chat_id).state is ChatState.ASKING
    assert chats.answer(chat_id, ask, Verdict.APPROVE, by="ann").by == "ann"
    with pytest.raises(AnsweredBefore, match=r"answered before: approved \(ann\)"):
        chats.answer(chat_id, ask, Verdict.DENY, by="bob")
    assert [one.kind for one in chats.entries(chat_id)].count(EntryKind.ANSWER) == 1


def test_an_answer_after_the_deadline_is_that_nobody_answered(chats: ChatStore) -> None:
    chat_id, ask = asking(chats)
    NOW[0] = 1600.0
    with pytest.raises(AnsweredBefore, match="nobody answered in time"):
        chats.answer(chat_id, ask, Verdict.APPROVE, by="ann")
    part = chats.entries(chat_id)[-1].part
    assert isinstance(part, AnswerPart)
    assert part.answer is Verdict.EXPIRED


def test_a_question_that_is_stopped_is_denied(chats: ChatStore) -> None:
    chat_id, ask = asking(chats)
    chats.stop(chat_id, by="bob", text="bob stopped it")
    assert [one.kind.value for one in chats.entries(chat_id)] == ["said", "ask", "answer", "stopped"]
    with pytest.raises(AnsweredBefore, match="denied"):
        chats.answer(chat_id, ask, Verdict.APPROVE, by="ann")


def test_only_questions_are_answered(chats: ChatStore) -> None:
    chat_id, _ = asking(chats)
    for number in (1, 99):
        with pytest.raises(ChatNotFound, match=f"entry {number} of chat c1 asks nothing"):
            chats.answer(chat_id, number, Verdict.APPROVE, by="ann")


def test_chats_are_found_by_words_that_are_no_patterns(chats: ChatStore) -> None:
    for text in ("100% of the loss", "why does LR_max diverge", "lrxmax"):
        chat = chats.make(None, by="ann")
        chats.say(chat.chat_id, text, by="ann")
    assert [one.chat_id for one in chats.chats(search="lr_MAX")] == ["c2"]
    assert [one.chat_id for one in chats.chats(search="100%")] == ["c1"]
    assert [one.chat_id for one in chats.chats(search="loss why")] == []
    assert [one.chat_id for one in chats.chats()] == ["c3", "c2", "c1"]
    assert [one.chat_id for one in chats.unfinished()] == ["c1", "c2", "c3"]
    chats.add("c2", EntryKind.TROUBLE, NothingPart(), "no", ends_turn=True)
    assert [one.chat_id for one in chats.unfinished()] == ["c1", "c3"]


def test_a_service_that_leaves_begins_nothing_more_and_keeps_what_was_done(chats: ChatStore) -> None:
    is_closing = [False]
    chats.make(None, by="ann")
    said = chats.say("c1", "cancel j1", by="ann")
    book = TurnBook(chats, "c1", said.number, is_closing=lambda: is_closing[0])
    assert len(book.entries()) == 1
    is_closing[0] = True
    for look in (book.entries, book.check):
        with pytest.raises(TurnOver, match="the service leaves"):
            look()
    book.add(EntryKind.REPLY, ReplyPart(), "done", by="m", ends_turn=True)
    assert chats.entries("c1")[-1].text == "done"
