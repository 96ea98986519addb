"""The agent's HTTP API, the real app in process: who may speak, what is read, answers that count once, the stream."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from agent_worlds import a_task, a_world
from fastapi import FastAPI
from test_gates import asking, live

from agent.gates.freedom import Action, Course, Ruling
from agent.gates.gate import Answer, GateKind
from agent.store.fenced import FencedWriter, Line
from agent.store.gates import GateBook
from agent.store.journal import Journal
from agent.store.nights import NightStore
from agent.store.record import SessionRecord
from agent.store.store import AgentStore
from agent.store.views import SessionState
from agent.sweeps.cells import Cell
from agent.sweeps.sweep import RandomMethod, Sweep
from agent.web.app import create_app
from agent.web.events import PAGE, Pulse, event_stream
from agent.web.keys import OWNER_FILE, Keys, Role, open_keys

pytestmark = pytest.mark.acceptance
KEYS = Keys(owner_token="owner", reader_token="reader")


@dataclass(slots=True)
class Door:
    store: AgentStore
    app: FastAPI
    writer: FencedWriter
    now: list[float]

    def call(self, method: str, path: str, *, token: str | None = "owner", **given: Any) -> httpx.Response:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        headers |= given.pop("headers", {})

        async def made() -> httpx.Response:
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:7072") as client:
                return await client.request(method, path, headers=headers, **given)

        return asyncio.run(made())

    def read(self, path: str) -> Any:
        response = self.call("GET", path)
        assert response.status_code == 200, response.text
        return response.json()["data"]

    def ask(self, subject: str = "c1") -> int:
        action = Action(subject=subject, kinds=(GateKind.TRIAL,), what="run s1-t1: x=0.5", cost_device_s=None)
        one = Ruling(action=action, course=Course.ASKS, kind=GateKind.TRIAL, why="autonomy.trials: propose")
        return GateBook(self.writer).ask([one], answer_within_s=60.0, unanswered=Answer.DENY)[0].gate_id

    def say(self, *texts: str) -> None:
        SessionRecord(self.writer).say([Line(step="session", text=text) for text in texts])


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Door]:
    now = [1000.0]
    store = AgentStore.open(tmp_path, clock=lambda: now[0])
    store.create_session(a_task())
    writer = FencedWriter(store, "s1", store.claim("s1", 1))
    yield Door(store=store, app=create_app(store, KEYS), writer=writer, now=now)
    store.close()


def error_of(response: httpx.Response) -> tuple[int, str]:
    body = response.json()
    assert body["data"] is None
    return response.status_code, body["error"]["code"]


@pytest.mark.parametrize(
    ("token", "expected"), [(None, (401, "no_token")), ("", (401, "no_token")), ("other", (401, "wrong_token"))]
)
def test_nothing_but_health_is_told_without_a_token(door: Door, token: str | None, expected: tuple[int, str]) -> None:
    for path in ("/v1/sessions", "/v1/openapi.json", "/v1/events", "/v1/nowhere"):
        assert error_of(door.call("GET", path, token=token)) == expected
    assert door.call("GET", "/v1/health", token=None).status_code == 200


def test_a_question_that_is_about_no_code_has_no_diff(door: Door) -> None:
    gate_id = door.ask()
    assert error_of(door.call("GET", f"/v1/gates/{gate_id}/diff")) == (404, "no_diff")
    assert error_of(door.call("GET", "/v1/gates/99/diff")) == (404, "unknown_gate")


def test_a_reader_reads_and_answers_nothing(door: Door) -> None:
    gate_id = door.ask()
    assert door.call("GET", "/v1/gates", token="reader").status_code == 200
    refusal = door.call("POST", f"/v1/gates/{gate_id}/approve", token="reader", json={})
    assert error_of(refusal) == (403, "reader_token")
    told = [door.call("GET", "/v1/me", token=token).json()["data"]["role"] for token in ("reader", "owner")]
    assert told == ["reader", "owner"]
    assert door.read(f"/v1/gates/{gate_id}")["is_waiting"]


@pytest.mark.parametrize("host", ["evil.example", "192.0.2.1:7072", "", "a@127.0.0.1"])
def test_other_hosts_and_origins_are_refused(door: Door, host: str) -> None:
    assert error_of(door.call("GET", "/v1/sessions", headers={"Host": host})) == (403, "host_not_allowed")
    other = door.call("GET", "/v1/sessions", headers={"Origin": "http://evil.example"})
    assert error_of(other) == (403, "origin_not_allowed")


def test_tokens_are_made_once_for_the_owner_alone(tmp_path: Path) -> None:
    keys = open_keys(tmp_path)
    assert open_keys(tmp_path) == keys
    assert (tmp_path / OWNER_FILE).stat().st_mode & 0o777 == 0o600
    assert keys.role_of(keys.reader_token) is Role.READER
    assert keys.role_of(keys.owner_token) is Role.OWNER


def test_a_session_is_told_without_its_key_and_its_environment(door: Door) -> None:
    (listed,) = door.read("/v1/sessions")
    told = door.read("/v1/sessions/s1")
    assert (listed["session_id"], told["metric"], told["best"]) == ("s1", "score", None)
    assert next(cap["name"] for cap in told["budgets"]) == "trials"
    assert not {"key", "task_json", "request_token"} & (listed.keys() | told.keys())


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/v1/sessions/s9", (404, "unknown_session")),
        ("/v1/sessions/s9/trials", (404, "unknown_session")),
        ("/v1/sessions/s9/notices", (404, "unknown_session")),
        ("/v1/gates?session_id=s9", (404, "unknown_session")),
        ("/v1/events?session_id=s9", (404, "unknown_session")),
        ("/v1/trials/s1-t9", (404, "unknown_trial")),
        ("/v1/gates/99", (404, "unknown_gate")),
        (f"/v1/gates/{10**30}", (404, "unknown_gate")),
        ("/v1/gates/x", (422, "invalid_value")),
        ("/v1/sessions/s1/trials?limit=0", (422, "invalid_value")),
        ("/v1/sessions/s1/trials?after=-1", (422, "invalid_value")),
        ("/v1/events/page?limit=501", (422, "invalid_value")),
        ("/v1/nowhere", (404, "no_such_path")),
    ],
)
def test_what_is_not_there_is_refused_in_the_envelope(door: Door, path: str, expected: tuple[int, str]) -> None:
    assert error_of(door.call("GET", path)) == expected


def test_a_bad_last_event_id_is_refused(door: Door) -> None:
    bad = door.call("GET", "/v1/events", headers={"Last-Event-ID": "soon"})
    assert error_of(bad) == (422, "invalid_value")


def test_the_first_answer_counts_and_the_second_learns_whose_it_was(door: Door) -> None:
    gate_id = door.ask()
    said = {"by": "ada", "note": "small"}
    first = door.call("POST", f"/v1/gates/{gate_id}/approve", json=said)
    again = door.call("POST", f"/v1/gates/{gate_id}/approve", json=said)
    assert (first.status_code, again.status_code) == (200, 200)
    assert first.json()["data"]["gate"]["answered_by"] == "ada"
    late = door.call("POST", f"/v1/gates/{gate_id}/deny", json={"by": "bob"})
    assert error_of(late) == (409, "answered_before")
    assert "approved by ada: small at 1000" in late.json()["error"]["message"]
    texts = [event["text"] for event in door.read("/v1/events/page")["items"]]
    assert texts.count(f"gate {gate_id} is approved by ada: small") == 1


def test_an_answer_after_the_deadline_is_a_conflict(door: Door) -> None:
    gate_id = door.ask()
    door.now[0] += 61
    late = door.call("POST", f"/v1/gates/{gate_id}/approve", json={})
    assert error_of(late) == (409, "answered_before")
    assert "nobody answered in time" in late.json()["error"]["message"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"{", (422, "invalid_value")),
        (b'{"by": ""}', (422, "invalid_value")),
        (b'{"by": "a\\nb"}', (422, "invalid_value")),
        (b'{"budget": 9}', (422, "invalid_value")),
        (b"[" * 70_000, (413, "too_large")),
    ],
)
def test_a_bad_answer_changes_nothing(door: Door, content: bytes, expected: tuple[int, str]) -> None:
    gate_id = door.ask()
    headers = {"Content-Type": "application/json"}
    answer = door.call("POST", f"/v1/gates/{gate_id}/approve", content=content, headers=headers)
    assert error_of(answer) == expected
    assert door.read(f"/v1/gates/{gate_id}")["is_waiting"]


def test_a_page_of_events_goes_on_where_the_last_one_ended(door: Door) -> None:
    door.say(*"abcde")
    first = door.read("/v1/events/page?limit=3")
    rest = door.read(f"/v1/events/page?limit=3&after={first['next_after']}")
    assert [e["text"] for e in (*first["items"], *rest["items"])] == list("abcde")
    assert rest["next_after"] is None


def streamed(door: Door, n: int, *, after: int, meanwhile: Callable[[], None]) -> list[dict[str, Any]]:
    """The first `n` events of a stream; `meanwhile` happens once it is open."""

    async def read() -> list[dict[str, Any]]:
        journal, found = Journal(door.store), []
        pulse = Pulse(journal.newest, look_every_s=0.005)
        stream = event_stream(pulse, journal, after=after, session_id=None, keep_alive_s=0.02)
        async for chunk in stream:
            if chunk == b": connected\n\n":
                await asyncio.to_thread(meanwhile)
            lines = chunk.decode().splitlines()
            found += [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]
            if len(found) >= n:
                pulse.close()
        return found

    return _within(read())


def _within(work: Coroutine[Any, Any, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    async def bounded() -> list[dict[str, Any]]:
        async with asyncio.timeout(20):
            return await work

    return asyncio.run(bounded())


def test_a_reader_that_comes_back_gets_each_event_once_in_order(door: Door) -> None:
    door.say("one", "two")
    first = streamed(door, 3, after=0, meanwhile=lambda: door.say("three"))
    rest = streamed(door, 1, after=first[1]["seq"], meanwhile=lambda: None)
    assert [event["text"] for event in first] == ["one", "two", "three"]
    assert [event["text"] for event in rest] == ["three"]


def test_a_stream_catches_up_with_more_than_one_page(door: Door) -> None:
    texts = [f"line {n}" for n in range(PAGE + 7)]
    door.say(*texts)
    assert [event["text"] for event in streamed(door, len(texts), after=0, meanwhile=lambda: None)] == texts


def test_every_route_is_typed_in_the_open_api_document(door: Door) -> None:
    document = door.call("GET", "/v1/openapi.json").json()
    for path, methods in document["paths"].items():
        for method, said in methods.items():
            content = said["responses"]["200"]["content"]
            if path != "/v1/events":
                assert content["application/json"]["schema"].get("$ref"), (path, method)
            assert "409" in said["responses"], (path, method)
    assert {"SessionDetail", "TrialView", "Gate", "Event"} <= document["components"]["schemas"].keys()


def test_a_stop_and_a_resume_over_http_say_whose_they_are_and_may_be_repeated(door: Door) -> None:
    for _ in range(2):
        stopped = door.call("POST", "/v1/sessions/s1/stop", json={"by": "ada"})
        assert (stopped.status_code, stopped.json()["data"]["state"]) == (200, "stopping")
    for _ in range(2):
        resumed = door.call("POST", "/v1/sessions/s1/resume", json={"by": "bob"})
        assert (resumed.status_code, resumed.json()["data"]["state"]) == (200, "running")
    texts = [event["text"] for event in door.read("/v1/events/page")["items"]]
    assert texts == ["ada asks it to stop", "bob has it go on"]


@pytest.mark.parametrize("what", ["stop", "resume"])
def test_a_reader_neither_stops_nor_resumes_and_unknown_sessions_are_named(door: Door, what: str) -> None:
    refusal = door.call("POST", f"/v1/sessions/s1/{what}", token="reader", json={})
    assert error_of(refusal) == (403, "reader_token")
    assert error_of(door.call("POST", f"/v1/sessions/s9/{what}", json={})) == (404, "unknown_session")
    assert door.read("/v1/sessions/s1")["state"] == "running"


FORBID = {"words": [{"kind": "forbid", "text": "x > 0.5"}, {"kind": "pause", "text": "lunch"}], "by": "ada"}


def test_what_is_said_over_http_counts_and_is_told_to_all_who_read(door: Door) -> None:
    said = door.call("POST", "/v1/sessions/s1/steer", json=FORBID).json()["data"]
    assert [one["words"] for one in said] == ["ada forbids x > 0.5", "ada pauses the session (lunch)"]
    assert door.call("GET", "/v1/sessions/s1/steerings", token="reader").json()["data"] == said
    detail = door.read("/v1/sessions/s1")
    assert (detail["forbidden"], detail["is_paused"], detail["is_taken_over"]) == (["x > 0.5"], True, False)
    told = [(e["step"], e["text"]) for e in door.read("/v1/events/page")["items"]]
    assert ("steer", "ada forbids x > 0.5") in told


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"words": [{"kind": "forbid", "text": "y > 1"}]}, (409, "can_not_steer")),
        ({"words": [{"kind": "forbid", "text": "x > 0.5"}, {"kind": "budget", "budget": "x"}]}, (409, "can_not_steer")),
        ({"words": [{"kind": "win", "text": "x"}]}, (422, "invalid_value")),
        ({"words": []}, (422, "invalid_value")),
        ({"words": [{"kind": "pause"}] * 51}, (422, "invalid_value")),
        ({}, (422, "invalid_value")),
    ],
)
def test_what_can_not_be_said_over_http_changes_nothing(
    door: Door, body: dict[str, Any], expected: tuple[int, str]
) -> None:
    status, code = error_of(door.call("POST", "/v1/sessions/s1/steer", json=body))
    assert (status, code) == expected
    assert door.read("/v1/sessions/s1/steerings") == []


def test_a_reader_steers_nothing_and_an_unknown_session_is_named(door: Door) -> None:
    assert error_of(door.call("POST", "/v1/sessions/s1/steer", token="reader", json=FORBID))[0] == 403
    assert error_of(door.call("POST", "/v1/sessions/s9/steer", json=FORBID)) == (404, "unknown_session")
    assert error_of(door.call("GET", "/v1/sessions/s9/steerings")) == (404, "unknown_session")


def test_a_finished_session_is_not_resumed(door: Door) -> None:
    SessionRecord(door.writer).conclude(SessionState.FINISHED, "done")
    refusal = door.call("POST", "/v1/sessions/s1/resume", json={})
    assert error_of(refusal) == (409, "session_not_runnable")


def test_a_session_of_a_night_that_runs_is_not_resumed(door: Door) -> None:
    cells = [Cell(name="a", task=a_task())]
    sweep = Sweep(sweep="digits", task="t.yaml", method=RandomMethod(kind="random", trials=3))
    night = NightStore(door.store).begin(sweep, file="f", cells=cells, finish_by=None).night
    assert night is not None
    door.store.create_session(a_task(), night_id=night.night_id)
    door.store.request_stop("s2")
    assert error_of(door.call("POST", "/v1/sessions/s2/resume", json={})) == (409, "session_of_running_night")
    assert door.store.session("s2").state is SessionState.STOPPING


def test_a_session_that_asks_goes_on_with_what_was_approved_over_http(tmp_path: Path) -> None:
    world = a_world(tmp_path, task=asking(answer_within_minutes=600))
    app = create_app(world.store, KEYS)
    door = Door(store=world.store, app=app, writer=FencedWriter(world.store, "s1", 0), now=[])
    approved: list[str] = []

    def answer() -> bool:
        """Asked before each wait of the session: what waits then is approved, by HTTP."""
        for waiting in door.read("/v1/gates"):
            gate = waiting["gate"]
            said = door.call("POST", f"/v1/gates/{gate['gate_id']}/approve", json={"by": "ada"})
            assert said.status_code == 200
            approved.append(gate["subject"])
        return False

    assert live(world, should_leave=answer) is SessionState.FINISHED
    measured = {trial["configuration"] for trial in door.read("/v1/sessions/s1/trials")["items"] if trial["value"]}
    assert approved
    assert set(approved) <= measured
    assert "guest" in {arm["suggested_by"] for arm in door.read("/v1/sessions/s1")["arms"]}
    world.store.close()
