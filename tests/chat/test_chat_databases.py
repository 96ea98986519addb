"""A whole turn on every database that the agent knows: entries, an approval, what the session pays, searching."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from agent_stores import postgres_url, store  # noqa: F401
from agent_worlds import a_task
from model_endpoint import calls, model_endpoint, says
from talking import Room, made_room

from agent.chat.entry import ChatState, EntryKind, NothingPart, Verdict
from agent.chat.models import ModelsOfChats
from agent.store.calls import model_calls_of
from agent.store.chats import AnsweredBefore, TurnUnderWay
from agent.store.store import AgentStore
from runtime_client.fake import FakeRuntime


@pytest.fixture
def room(store: AgentStore, tmp_path: Path) -> Room:  # noqa: F811
    return made_room(store, tmp_path, [])


def test_a_turn_is_asked_about_paid_for_and_kept(store: AgentStore, room: Room, tmp_path: Path) -> None:  # noqa: F811
    @contextmanager
    def connect() -> Iterator[FakeRuntime]:
        yield room.runtime

    with model_endpoint(calls("cancel_job", '{"job": "j1"}'), says("it is\ud800 over", usage=(50, 5))) as endpoint:
        store.create_session(
            a_task(model={"name": "m", "base_url": endpoint.base_url}, budgets={"trials": 6, "tokens": 90_000})
        )
        room.chat_id = room.chats.make("s1", by="ann").chat_id
        with room.talk(ModelsOfChats(store, tmp_path, connect, {"NIGHTLAB_MODEL_CALLS": "loopback"})) as talk:
            room.say(talk, "cancel j1\x00")
            number, _ask = room.asked()
            with pytest.raises(TurnUnderWay):
                room.chats.say(room.chat_id, "and?", by="bob")
            room.chats.answer(room.chat_id, number, Verdict.APPROVE, by="bob")
            with pytest.raises(AnsweredBefore):
                room.chats.answer(room.chat_id, number, Verdict.DENY, by="ann")
            talk.answered(room.chat_id)
            room.settle()
    assert room.cancel.done == [("j1", "bob")]
    assert room.kinds == ["said", "reply", "call", "ask", "answer", "result", "reply"]
    assert room.entries[-1].text == "it is\ufffd over"
    assert store.session("s1").tokens == sum(
        one.prompt_tokens + one.completion_tokens for one in model_calls_of(store, "s1")
    )
    assert [one.chat_id for one in room.chats.chats(search="CANCEL")] == [room.chat_id]


def test_what_is_said_with_one_key_is_said_once(room: Room) -> None:
    first = room.chats.say("c1", "hello", by="ann", key="k")
    assert room.chats.say("c1", "hello", by="ann", key="k") == first
    assert [one.chat_id for one in room.chats.unfinished()] == ["c1"]
    room.chats.add("c1", EntryKind.STOPPED, NothingPart(), "enough", ends_turn=True)
    assert room.chats.chat("c1").state is ChatState.IDLE
