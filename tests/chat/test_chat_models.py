"""Chats with a real endpoint on loopback that misbehaves: what is seen, and what the session pays."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from agent_worlds import a_task
from loopback_servers import nobody
from model_endpoint import Answering, Play, calls, chunk, model_endpoint, refuses, says, sends, streams
from talking import WAIT_S, Room, made_room

from agent.chat.entry import ReplyPart, TroublePart
from agent.chat.models import ModelsOfChats
from agent.chat.settings import ChatSettingsError, chat_settings
from agent.chat.talk import Talk
from agent.store.calls import CallBook, model_calls_of
from agent.store.fenced import FencedWriter
from agent.store.store import AgentStore
from runtime_client.fake import FakeRuntime

pytestmark = pytest.mark.web

KEY = "sk-chat-0123456789abcdef0123"


@contextmanager
def a_room(home: Path, model: dict[str, Any] | None = None, **changes: Any) -> Iterator[Room]:
    """A chat of session s1, whose task has this model; without a model, a chat of no session."""
    now = [1000.0]
    store = AgentStore.open(home, clock=lambda: now[0])
    try:
        if model is not None:
            store.create_session(a_task(model={"name": "m", **model}, **changes))
        yield made_room(store, home, now, None if model is None else "s1")
    finally:
        store.close()


@contextmanager
def talking(room: Room, **environ: str) -> Iterator[Talk]:
    @contextmanager
    def connect() -> Iterator[FakeRuntime]:
        yield room.runtime

    allowed = {"NIGHTLAB_MODEL_CALLS": "loopback", **environ}
    with room.talk(ModelsOfChats(room.store, room.home, connect, allowed)) as talk:
        yield talk


def last_trouble(room: Room) -> tuple[str, str]:
    last = room.entries[-1]
    assert isinstance(last.part, TroublePart), room.entries
    return last.part.code, last.text


def test_a_chat_pays_from_the_budget_of_its_session(tmp_path: Path) -> None:
    budgets = {"trials": 6, "tokens": 100_000}
    price = {"prompt": 1.0, "completion": 2.0}
    with (
        model_endpoint(calls("read_logs", '{"job": "j1"}'), says("it trains", usage=(100, 10))) as endpoint,
        a_room(tmp_path, {"base_url": endpoint.base_url, "price": price}, budgets=budgets) as room,
        talking(room) as talk,
    ):
        assert talk.model_of(room.chats.chat("c1")) == "m"
        room.say(talk, "how is j1?")
        assert room.kinds == ["said", "reply", "call", "result", "reply"]
        rows, session = model_calls_of(room.store, "s1"), room.store.session("s1")
        assert [(one.purpose, one.outcome) for one in rows] == [("chat", "used")] * 2
        assert session.tokens == sum(one.prompt_tokens + one.completion_tokens for one in rows) == 18 + 110
        assert session.cost_usd == pytest.approx((11 + 100 + 2 * (7 + 10)) / 1e6)
        parts = [part for one in room.entries if isinstance(part := one.part, ReplyPart)]
        assert sum(part.prompt_tokens + part.completion_tokens for part in parts) == session.tokens


def test_what_a_budget_has_no_room_for_is_not_asked_and_is_told_how_to_raise(tmp_path: Path) -> None:
    with (
        model_endpoint(says("hello")) as endpoint,
        a_room(tmp_path, {"base_url": endpoint.base_url}, budgets={"trials": 6, "tokens": 300}) as room,
        talking(room) as talk,
    ):
        room.say(talk, "hello")
        code, text = last_trouble(room)
        assert code == "over_budget"
        assert "budgets.tokens: 0 of 300 are used" in text
        assert "nightlab research steer s1 --budget tokens=N" in text
        assert endpoint.n_requests == 0
        assert room.store.session("s1").tokens == 0


def test_money_that_devices_have_used_is_told_by_its_own_name(tmp_path: Path) -> None:
    budgets = {"trials": 6, "cost_usd": 1.0, "usd_per_device_hour": 3600.0}
    model = {"price": {"prompt": 1.0, "completion": 2.0}}
    with (
        model_endpoint(says("hello")) as endpoint,
        a_room(tmp_path, {"base_url": endpoint.base_url, **model}, budgets=budgets) as room,
        talking(room) as talk,
    ):
        writer = FencedWriter(room.store, "s1", room.store.claim("s1", 1))
        with writer.writing() as connection:
            writer.add(connection, device_seconds=2.0)
        room.say(talk, "hello")
        code, text = last_trouble(room)
        assert code == "over_budget"
        assert "budgets.cost_usd: 2.00 of 1 are used" in text
        assert "/budget s1 cost_usd=N" in text


def test_time_that_is_used_up_does_not_silence_a_chat(tmp_path: Path) -> None:
    with (
        model_endpoint(says("it is over")) as endpoint,
        a_room(tmp_path, {"base_url": endpoint.base_url}, budgets={"trials": 6, "wall_minutes": 1}) as room,
        talking(room) as talk,
    ):
        writer = FencedWriter(room.store, "s1", room.store.claim("s1", 1))
        with writer.writing() as connection:
            writer.add(connection, wall_seconds=3600.0)
        room.say(talk, "how did it end?")
        assert room.entries[-1].text == "it is over"


def test_a_session_that_opens_while_a_chat_asks_loses_nothing_of_it(tmp_path: Path) -> None:
    begun, goes_on = threading.Event(), threading.Event()

    def slow(answering: Answering) -> None:
        begun.set()
        assert goes_on.wait(WAIT_S)
        says("yes", usage=(50, 5))(answering)

    with (
        model_endpoint(slow) as endpoint,
        a_room(tmp_path, {"base_url": endpoint.base_url}) as room,
        talking(room) as talk,
    ):
        room.chats.say("c1", "hello", by="ann")
        talk.begin("c1")
        assert begun.wait(WAIT_S)
        CallBook(FencedWriter(room.store, "s1", room.store.claim("s1", 1))).close_open()
        goes_on.set()
        room.settle()
        assert room.entries[-1].text == "yes"
        assert room.store.session("s1").tokens == 55
        assert [one.outcome for one in model_calls_of(room.store, "s1")] == ["used"]


@pytest.mark.parametrize(
    ("play", "code"),
    [
        (refuses(401, {"error": {"message": "bad key"}}), "unauthorized"),
        (refuses(404, {"error": {"message": "model m does not exist"}}), "unknown_model"),
        (sends(b"<html>", "text/html"), "garbled"),
        (streams([], finish=None), "garbled"),
    ],
)
def test_a_fault_of_the_endpoint_ends_the_turn_in_words(tmp_path: Path, play: Play, code: str) -> None:
    with (
        model_endpoint(play) as endpoint,
        a_room(tmp_path, {"base_url": endpoint.base_url}) as room,
        talking(room) as talk,
    ):
        room.say(talk, "hello")
        assert last_trouble(room)[0] == code


def test_an_endpoint_that_is_down_is_named(tmp_path: Path) -> None:
    with nobody() as port:
        model = {"base_url": f"http://127.0.0.1:{port}/v1", "call_seconds": 1}
        with a_room(tmp_path, model) as room, talking(room) as talk:
            room.say(talk, "hello")
            code, text = last_trouble(room)
            assert code == "unreachable"
            assert f"127.0.0.1:{port}" in text


def test_an_endpoint_that_is_too_slow_is_given_up(tmp_path: Path) -> None:
    with (
        model_endpoint(lambda answering: (answering.over.wait(WAIT_S), None)[1]) as endpoint,
        a_room(tmp_path, {"base_url": endpoint.base_url, "call_seconds": 0.5}) as room,
        talking(room) as talk,
    ):
        room.say(talk, "hello")
        assert last_trouble(room)[0] == "timed_out"


def test_what_came_before_the_connection_broke_is_kept(tmp_path: Path) -> None:
    with (
        model_endpoint(streams([{"content": "it tra"}, {"content": "ins"}], finish=None)) as endpoint,
        a_room(tmp_path, {"base_url": endpoint.base_url}) as room,
        talking(room) as talk,
    ):
        room.say(talk, "hello")
        assert room.kinds == ["said", "reply", "trouble"]
        assert room.entries[1].text == "it trains"
        assert room.store.session("s1").tokens > 0, "what it may have used is paid"


def test_a_person_stops_an_answer_and_the_connection_ends(tmp_path: Path) -> None:
    spoken, hung_up = threading.Event(), threading.Event()

    def endless(answering: Answering) -> None:
        answering.begin_stream()
        answering.wfile.write(chunk({"content": "it trains"}))
        spoken.set()
        try:
            while not answering.over.wait(0.02):
                answering.wfile.write(chunk({"content": " on"}))
        except OSError:
            hung_up.set()

    with (
        model_endpoint(endless) as endpoint,
        a_room(tmp_path, {"base_url": endpoint.base_url}) as room,
        talking(room) as talk,
    ):
        room.chats.say("c1", "hello", by="ann")
        talk.begin("c1")
        assert spoken.wait(WAIT_S)
        ends_at = time.monotonic() + WAIT_S
        while not room.hub.written("c1"):
            assert time.monotonic() < ends_at
            time.sleep(0.01)
        talk.stop("c1", "ann")
        assert room.kinds == ["said", "reply", "stopped"]
        assert room.entries[1].text.startswith("it trains")
        assert hung_up.wait(WAIT_S)


def test_an_endpoint_without_tools_answers_without(tmp_path: Path) -> None:
    no = refuses(400, {"error": {"message": "this model does not support tools"}})
    with (
        model_endpoint(no, says("hello")) as endpoint,
        a_room(tmp_path, {"base_url": endpoint.base_url}) as room,
        talking(room) as talk,
    ):
        room.say(talk, "hello")
        assert room.kinds == ["said", "trouble", "reply"]
        assert "tools" in endpoint.requests[0]
        assert "tools" not in endpoint.requests[-1]


def test_a_chat_of_no_session_asks_the_model_of_the_file(tmp_path: Path) -> None:
    with model_endpoint(says("hello")) as endpoint, a_room(tmp_path) as room, talking(room, OPENAI_API_KEY=KEY) as talk:
        room.say(talk, "hello")
        assert last_trouble(room)[0] == "no_model"
        assert talk.model_of(room.chats.chat("c1")) is None
        (tmp_path / "chat.yaml").write_text(f"model: {{name: f, base_url: '{endpoint.base_url}'}}")
        assert talk.model_of(room.chats.chat("c1")) == "f"
        room.say(talk, f"my key is {KEY}")
        assert room.entries[-1].text == "hello"
        assert KEY not in json.dumps(endpoint.requests), "a key is not sent as text"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("model: {nam: x}", "nam"),
        ("models: {}", "models"),
        ("ask_above_device_minutes: -1", "ask_above_device_minutes"),
        ("- 1", "chat.yaml"),
        ("model: {", "YAML"),
    ],
)
def test_a_file_that_can_not_be_used_is_told_and_commands_still_work(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "chat.yaml").write_text(text)
    with pytest.raises(ChatSettingsError, match=said):
        chat_settings(tmp_path)
    with a_room(tmp_path) as room, talking(room) as talk:
        room.say(talk, "hello")
        assert said in last_trouble(room)[1]
        room.say(talk, "/help")
        assert room.kinds[-1] == "result"


def test_a_key_file_lies_beside_the_settings(tmp_path: Path) -> None:
    (tmp_path / "chat.yaml").write_text("model: {name: x, key_file: key}")
    model = chat_settings(tmp_path).model
    assert model is not None
    assert model.key_file == str(tmp_path / "key")
