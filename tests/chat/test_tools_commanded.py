"""From a line that a person types to what is done: each acting command is asked about first, with its cost."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from agent_worlds import World
from chat_worlds import a_desk, a_stopped_world

from agent.chat import commanded
from agent.chat.entry import AskPart, Entry, EntryKind, ResultPart, Verdict
from agent.chat.tools import ALL
from agent.store.chats import ChatStore, TurnBook
from agent.store.steering import SteeringStore


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = a_stopped_world(tmp_path_factory.mktemp("home"))
    yield made
    made.store.close()


def typed(world: World, line: str, answer: Verdict = Verdict.APPROVE) -> tuple[list[Entry], str]:
    """The entries until the question, if there is one, and what came of it in the end."""
    chats = ChatStore(world.store)
    chat = chats.make("s1", by="ann")
    desk = a_desk(world, chat_id=chat.chat_id)
    said = chats.say(chat.chat_id, line, by="ann")
    book = TurnBook(chats, chat.chat_id, said.number)
    commanded.go_on(book, desk, ALL)
    before = chats.entries(chat.chat_id)
    if before[-1].kind is EntryKind.ASK:
        chats.answer(chat.chat_id, before[-1].number, answer, by="bob")
        commanded.go_on(book, desk, ALL)
    last = chats.entries(chat.chat_id)[-1]
    assert last.ends_turn
    return before, last.text


def test_what_costs_little_is_asked_about_too_where_a_person_types_it(world: World) -> None:
    before, text = typed(world, "/launch t1 2")
    part = before[-1].part
    assert isinstance(part, AskPart)
    assert part.device_seconds is not None
    assert part.device_seconds < 600
    assert part.why == commanded.UNSEEN
    assert text == "2 replicates of s1-t1 launched, outside of s1"


def test_a_limit_is_lifted_by_none(world: World) -> None:
    _, text = typed(world, "/budget tokens=none")
    assert text.startswith("bob sets budgets.tokens to no limit; s1 goes by it when it is resumed")


def test_what_is_denied_is_not_said(world: World) -> None:
    n = len(SteeringStore(world.store).steerings("s1"))
    _, text = typed(world, "/forbid x > 0.9", Verdict.DENY)
    assert text.endswith("nothing was done")
    assert len(SteeringStore(world.store).steerings("s1")) == n


def test_what_can_not_be_done_is_not_asked_about(world: World) -> None:
    before, text = typed(world, "/forbid y > 1")
    part = before[-1].part
    assert isinstance(part, ResultPart)
    assert part.is_error
    assert "'y' is no parameter of this task" in text


@pytest.mark.parametrize("line", ["/best", "/trials", "/curve t1", "/plan", "/jobs", "/devices", "/budget"])
def test_what_only_reads_is_told_at_once(world: World, line: str) -> None:
    before, text = typed(world, line)
    assert [one.kind for one in before] == [EntryKind.SAID, EntryKind.CALL, EntryKind.RESULT]
    assert text == before[-1].text
