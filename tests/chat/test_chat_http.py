"""Chats over HTTP, the real app on a real server: who may speak, the approval path, the stream, and what is refused."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from agent_worlds import a_task

from agent.chat.entry import EntryKind, ReplyPart
from agent.chat.hub import N_READERS, Hub
from agent.chat.talk import Talk
from agent.chat.tools import ALL
from agent.store.chats import ChatStore
from agent.store.store import AgentStore
from agent.web.app import create_app
from agent.web.keys import Keys

pytestmark = pytest.mark.web

KEYS = Keys(owner_token="owner", reader_token="reader")
WAIT_S = 20.0


@dataclass(slots=True)
class Door:
    store: AgentStore
    talk: Talk
    url: str
    now: list[float]

    def call(self, method: str, path: str, *, token: str = "owner", **given: Any) -> httpx.Response:
        return httpx.request(method, self.url + path, headers={"Authorization": f"Bearer {token}"}, timeout=5, **given)

    def read(self, path: str) -> Any:
        response = self.call("GET", path)
        assert response.status_code == 200, response.text
        return response.json()["data"]

    def post(self, path: str, **body: Any) -> Any:
        response = self.call("POST", path, json=body)
        assert response.status_code == 200, response.text
        return response.json()["data"]

    def refusal(self, path: str, **body: Any) -> tuple[int, str]:
        response = self.call("POST", path, json=body)
        return response.status_code, response.json()["error"]["code"]

    def kinds(self, chat_id: str) -> list[str]:
        return [one["kind"] for one in self.read(f"/v1/chats/{chat_id}/entries")["items"]]

    def until(self, chat_id: str, state: str) -> None:
        ends_at = time.monotonic() + WAIT_S
        while self.read(f"/v1/chats/{chat_id}")["state"] != state:
            assert time.monotonic() < ends_at, self.read(f"/v1/chats/{chat_id}/entries")
            time.sleep(0.02)

    @contextmanager
    def stream(self, chat_id: str, after: int = 0, **headers: str) -> Iterator[Iterator[tuple[str, Any]]]:
        sent = {"Authorization": "Bearer reader", **headers}
        path = f"{self.url}/v1/chats/{chat_id}/stream?after={after}"
        with httpx.stream("GET", path, headers=sent, timeout=WAIT_S) as response:
            assert response.status_code == 200
            yield events_of(response)


def events_of(response: httpx.Response) -> Iterator[tuple[str, Any]]:
    kind = ""
    for line in response.iter_lines():
        if line.startswith("event: "):
            kind = line[7:]
        elif line.startswith("data: "):
            yield kind, json.loads(line[6:])


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Door]:
    now = [1000.0]
    store = AgentStore.open(tmp_path, clock=lambda: now[0])
    store.create_session(a_task())
    talk = Talk(store, tmp_path, Hub(), tools=ALL)
    app = create_app(store, KEYS, tmp_path, talk=talk)
    config = uvicorn.Config(app, host="127.0.0.1", port=0, lifespan="off", log_level="warning")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    talk.start()
    port = server.servers[0].sockets[0].getsockname()[1]
    yield Door(store=store, talk=talk, url=f"http://127.0.0.1:{port}", now=now)
    server.should_exit = True
    talk.close()
    app.state.pulse.close()
    thread.join(timeout=10)
    store.close()


def test_a_command_answers_without_a_model(door: Door) -> None:
    made = door.post("/v1/chats", session_id="s1", by="ann")
    assert (made["chat_id"], made["session_id"], made["model"]) == ("c1", "s1", None)
    door.post("/v1/chats/c1/say", text="/sessions", by="ann")
    door.until("c1", "idle")
    said, call, result = door.read("/v1/chats/c1/entries")["items"]
    assert (said["text"], said["by"]) == ("/sessions", "ann")
    assert call["content"]["tool"] == result["content"]["tool"]
    assert result["content"]["table"]["rows"][0][0] == "s1"


def test_without_a_model_a_question_is_told_what_to_do(door: Door) -> None:
    door.post("/v1/chats")
    door.post("/v1/chats/c1/say", text="what runs?")
    door.until("c1", "idle")
    last = door.read("/v1/chats/c1/entries")["items"][-1]
    assert (last["kind"], last["content"]["code"]) == ("trouble", "no_model")
    assert "/help" in last["text"]


def test_what_ends_work_is_done_once_a_person_agrees(door: Door) -> None:
    door.post("/v1/chats", session_id="s1")
    door.post("/v1/chats/c1/say", text="/stop", by="ann")
    door.until("c1", "asking")
    assert door.store.session("s1").state.value == "running"
    assert door.refusal("/v1/chats/c1/say", text="/sessions") == (409, "turn_under_way")
    answer = door.post("/v1/chats/c1/approvals/3", answer="approve", by="ann")
    assert door.post("/v1/chats/c1/approvals/3", answer="approve", by="ann") == answer
    assert door.refusal("/v1/chats/c1/approvals/3", answer="deny", by="bob") == (409, "answered_before")
    door.until("c1", "idle")
    assert door.kinds("c1") == ["said", "call", "ask", "answer", "result"]
    assert door.store.session("s1").state.value in ("stopping", "stopped")


def test_what_is_denied_is_not_done(door: Door) -> None:
    door.post("/v1/chats", session_id="s1")
    door.post("/v1/chats/c1/say", text="/stop")
    door.until("c1", "asking")
    door.post("/v1/chats/c1/approvals/3", answer="deny", note="not yet")
    door.until("c1", "idle")
    assert door.store.session("s1").state.value == "running"


def test_an_answer_after_the_deadline_does_nothing(door: Door) -> None:
    door.post("/v1/chats", session_id="s1")
    door.post("/v1/chats/c1/say", text="/stop")
    door.until("c1", "asking")
    door.now[0] += 601
    assert door.refusal("/v1/chats/c1/approvals/3", answer="approve") == (409, "expired")
    door.until("c1", "idle")
    assert door.store.session("s1").state.value == "running"


def test_a_question_ends_by_its_deadline_without_anybody(door: Door) -> None:
    door.post("/v1/chats", session_id="s1")
    door.post("/v1/chats/c1/say", text="/stop")
    door.until("c1", "asking")
    door.now[0] += 601
    door.until("c1", "idle")
    assert door.read("/v1/chats/c1/entries")["items"][3]["content"]["answer"] == "expired"


def test_a_turn_that_waits_survives_a_restart_and_one_at_work_is_told_as_lost(door: Door) -> None:
    door.post("/v1/chats", session_id="s1")
    door.post("/v1/chats/c1/say", text="/stop")
    door.until("c1", "asking")
    ChatStore(door.store).make(None, by="ann")
    ChatStore(door.store).say("c2", "cut in the middle", by="ann")
    later = Talk(door.store, None, Hub(), tools=ALL)
    later.start()
    later.close()
    assert door.read("/v1/chats/c1")["state"] == "asking"
    assert door.kinds("c2") == ["said", "stopped"]


def test_a_reader_reads_and_does_not_speak(door: Door) -> None:
    door.post("/v1/chats")
    assert door.call("GET", "/v1/chats/c1/entries", token="reader").status_code == 200
    for path in ("/v1/chats", "/v1/chats/c1/say", "/v1/chats/c1/stop", "/v1/chats/c1/approvals/1"):
        assert door.call("POST", path, token="reader", json={}).status_code == 403


@pytest.mark.parametrize(
    ("path", "body", "refusal"),
    [
        ("/v1/chats", {"session_id": "s9"}, (404, "unknown_session")),
        ("/v1/chats/c9/say", {"text": "x"}, (404, "unknown_chat")),
        ("/v1/chats/c1/say", {"text": ""}, (422, "invalid_value")),
        ("/v1/chats/c1/say", {"text": "x" * 20_001}, (422, "invalid_value")),
        ("/v1/chats/c1/say", {"text": "x", "by": "a\x1b[31m"}, (422, "invalid_value")),
        ("/v1/chats/c9/stop", {}, (404, "unknown_chat")),
        ("/v1/chats/c1/approvals/7", {"answer": "approve"}, (404, "unknown_question")),
        ("/v1/chats/c1/approvals/99999999999", {"answer": "approve"}, (404, "unknown_question")),
        ("/v1/chats/c1/approvals/1", {"answer": "expired"}, (422, "invalid_value")),
    ],
)
def test_bad_requests_are_refused(door: Door, path: str, body: dict[str, Any], refusal: tuple[int, str]) -> None:
    door.post("/v1/chats")
    assert door.refusal(path, **body) == refusal


def test_the_stream_gives_what_was_what_is_written_and_what_comes(door: Door) -> None:
    door.post("/v1/chats")
    chats = ChatStore(door.store)
    chats.say("c1", "why?", by="ann")
    door.talk.hub.text("c1", "Be")
    door.talk.hub.text("c1", "cause")
    with door.stream("c1") as events:
        assert next(events)[1]["text"] == "why?"
        assert next(events)[1]["state"] == "working"
        assert next(events) == ("text", {"offset": 0, "text": "Because"})
        door.talk.hub.text("c1", " of lr")
        assert next(events) == ("text", {"offset": 7, "text": " of lr"})
        chats.add("c1", EntryKind.REPLY, ReplyPart(), "Because of lr", by="m", ends_turn=True)
        door.talk.hub.news("c1")
        kind, entry = next(events)
        assert (kind, entry["number"], entry["text"]) == ("entry", 2, "Because of lr")
        assert next(events)[1]["state"] == "idle"


def test_a_stream_goes_on_after_the_last_number(door: Door) -> None:
    door.post("/v1/chats")
    door.post("/v1/chats/c1/say", text="/help")
    door.until("c1", "idle")
    with door.stream("c1", **{"Last-Event-ID": "1"}) as events:
        assert next(events)[1]["number"] == 2
    refused = door.call("GET", "/v1/chats/c9/stream")
    assert refused.status_code == 404


def test_the_hub_lets_so_many_read(door: Door) -> None:
    door.post("/v1/chats")
    door.talk.hub._n_readers = N_READERS
    refused = door.call("GET", "/v1/chats/c1/stream")
    door.talk.hub._n_readers = 0
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "too_many_streams")


def test_each_command_of_a_chat_is_a_call_of_its_own(door: Door) -> None:
    door.post("/v1/chats")
    for text in ("/sessions", "/help", "/sessions"):
        door.post("/v1/chats/c1/say", text=text)
        door.until("c1", "idle")
    found = door.read("/v1/chats/c1/entries")["items"]
    calls = [one["content"]["call_id"] for one in found if one["kind"] == "call"]
    results = [one["content"]["call_id"] for one in found if one["kind"] == "result"]
    assert len(set(results)) == 3
    assert calls == [results[0], results[2]]
