"""The adapter against an endpoint on loopback that misbehaves in every way: each trouble and each dialect."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from agent_worlds import a_task
from loopback_servers import nobody, serving
from model_endpoint import (
    Play,
    calls,
    chunk,
    completion,
    model_endpoint,
    refuses,
    says,
    sends,
    streams,
)
from pydantic import BaseModel

import prompts
from agent.llm.chat import Finish, Message, ModelError, ReplySchema, Request, Role, Tool, Trouble
from agent.llm.guard import Calls
from agent.llm.of_session import open_asker
from agent.llm.openai_chat import Endpoint, OpenAIChat
from agent.llm.opening import open_model
from agent.llm.standing import tried
from agent.store.calls import model_calls_of
from agent.store.fenced import FencedWriter
from agent.store.store import AgentStore

TOOL = Tool(name="suggest", description="Suggest trials.", parameters={"type": "object", "properties": {}})
SCHEMA = ReplySchema(name="ideas", schema={"type": "object", "properties": {}, "additionalProperties": False})


def asking(**changes: Any) -> Request:
    return Request(messages=(Message(role=Role.USER, text="hello"),), purpose="check", **changes)


def chat_at(
    base_url: str, *, key: str | None = None, wait_s: float = 0.0, allowed: Calls = Calls.LOOPBACK
) -> OpenAIChat:
    endpoint = Endpoint(base_url=base_url, model="tiny", key=key, calls=allowed)
    return OpenAIChat(endpoint, jitter=lambda most_s: wait_s)


def trouble_with(
    *plays: Play, request: Request | None = None, deadline_s: float = 10, streamed: bool = False
) -> ModelError:
    with model_endpoint(*plays) as endpoint, pytest.raises(ModelError) as caught:
        chat_at(endpoint.base_url).complete(
            request or asking(), deadline_s=deadline_s, on_text=(lambda text: None) if streamed else None
        )
    return caught.value


def test_a_whole_answer_comes_with_its_usage_and_the_name_that_the_endpoint_gives() -> None:
    with model_endpoint(says("good day")) as endpoint:
        reply = chat_at(endpoint.base_url, key="sk-1").complete(asking(max_tokens=99), deadline_s=10)
    assert (reply.text, reply.finish, reply.model, reply.first_token_s) == (
        "good day",
        Finish.STOP,
        "served-model",
        None,
    )
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens, reply.usage.is_estimated) == (11, 7, False)
    assert endpoint.requests == [
        {"model": "tiny", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 99}
    ]
    assert endpoint.headers[0]["authorization"] == "Bearer sk-1"


def test_a_streamed_answer_comes_in_pieces_and_with_its_usage() -> None:
    pieces: list[str] = []
    with model_endpoint(says("good day")) as endpoint:
        reply = chat_at(endpoint.base_url).complete(asking(), deadline_s=10, on_text=pieces.append)
    assert (pieces, reply.text) == (["good", " day"], "good day")
    assert (reply.usage.total, reply.usage.is_estimated) == (18, False)
    assert reply.first_token_s is not None
    assert 0 <= reply.first_token_s <= reply.took_s


def test_usage_that_is_not_told_is_estimated() -> None:
    with model_endpoint(says("good day", usage=None)) as endpoint:
        usage = chat_at(endpoint.base_url).complete(asking(), deadline_s=10).usage
    assert usage.is_estimated
    assert usage.completion_tokens == 3


def test_stream_options_that_are_refused_are_left_out_from_then_on() -> None:
    refusing = refuses(400, {"error": {"message": "Unrecognized request argument: stream_options"}})
    with model_endpoint(refusing, says("good day")) as endpoint:
        chat = chat_at(endpoint.base_url)
        for _ in range(2):
            assert chat.complete(asking(), deadline_s=10, on_text=lambda text: None).usage.is_estimated
    assert ["stream_options" in asked for asked in endpoint.requests] == [True, False, False]


def test_an_answer_asked_for_in_pieces_may_come_whole() -> None:
    pieces: list[str] = []
    with model_endpoint(sends(completion({"content": "whole"}))) as endpoint:
        assert chat_at(endpoint.base_url).complete(asking(), deadline_s=10, on_text=pieces.append).text == "whole"
    assert pieces == ["whole"]


def test_a_tool_call_is_read_whole() -> None:
    with model_endpoint(calls("suggest", '{"lr": 0.1}')) as endpoint:
        reply = chat_at(endpoint.base_url).complete(asking(tools=(TOOL,), must_call=True), deadline_s=10)
    assert reply.finish is Finish.TOOLS
    assert [(call.call_id, call.name, call.arguments) for call in reply.tool_calls] == [
        ("c1", "suggest", '{"lr": 0.1}')
    ]
    assert endpoint.requests[0]["tool_choice"] == "required"


def test_pieces_of_two_tool_calls_are_joined_by_their_index() -> None:
    def part(index: int, call_id: str | None, name: str | None, arguments: str) -> dict[str, Any]:
        return {"tool_calls": [{"index": index, "id": call_id, "function": {"name": name, "arguments": arguments}}]}

    deltas = [
        part(0, "a", "suggest", ""),
        part(0, None, None, '{"lr"'),
        part(1, "b", "stop", "{}"),
        part(0, None, None, ": 1}"),
    ]
    with model_endpoint(streams(deltas, finish="tool_calls")) as endpoint:
        reply = chat_at(endpoint.base_url).complete(asking(tools=(TOOL,)), deadline_s=10, on_text=lambda text: None)
    found = [(call.call_id, call.name, call.arguments) for call in reply.tool_calls]
    assert found == [("a", "suggest", '{"lr": 1}'), ("b", "stop", "{}")]


def test_a_schema_goes_along_and_is_strict_where_it_may_be() -> None:
    with model_endpoint(says("{}")) as endpoint:
        chat_at(endpoint.base_url).complete(asking(schema=SCHEMA), deadline_s=10)
    sent = endpoint.requests[0]["response_format"]
    assert sent == {"type": "json_schema", "json_schema": {"name": "ideas", "schema": SCHEMA.schema, "strict": True}}


def test_a_busy_endpoint_is_asked_again_after_what_it_asks_for() -> None:
    waits: list[float] = []
    busy = refuses(429, {"error": {"message": "Rate limit reached"}}, retry_after="0.05")
    with model_endpoint(busy, busy, says("good day")) as endpoint:
        chat = OpenAIChat(
            Endpoint(base_url=endpoint.base_url, model="tiny", calls=Calls.LOOPBACK),
            jitter=lambda most_s: waits.append(most_s) or 0.0,
        )
        began = time.monotonic()
        assert chat.complete(asking(), deadline_s=10).text == "good day"
    assert time.monotonic() - began >= 0.1
    assert endpoint.n_requests == 3
    assert waits == [0.5, 0.5]


def test_a_failing_endpoint_is_asked_four_times_with_bounds_that_double() -> None:
    waits: list[float] = []
    with model_endpoint(refuses(503, "upstream is away")) as endpoint, pytest.raises(ModelError) as caught:
        OpenAIChat(
            Endpoint(base_url=endpoint.base_url, model="tiny", calls=Calls.LOOPBACK),
            jitter=lambda most_s: waits.append(most_s) or 0.0,
        ).complete(asking(), deadline_s=10)
    assert (caught.value.trouble, caught.value.status, endpoint.n_requests) == (Trouble.FAILED, 503, 4)
    assert waits == [0.5, 1.0, 2.0]
    assert "tiny at http://127.0.0.1" in str(caught.value)
    assert "upstream is away; the endpoint failed: look into its log" in str(caught.value)


@pytest.mark.parametrize(
    ("status", "body", "trouble"),
    [
        (401, {"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}, Trouble.UNAUTHORIZED),
        (403, {"error": "forbidden"}, Trouble.UNAUTHORIZED),
        (404, {"error": {"message": "model 'tiny' not found, try pulling it first"}}, Trouble.UNKNOWN_MODEL),
        (404, {"detail": "Not Found"}, Trouble.UNREACHABLE),
        (400, {"error": {"message": "unsupported response_format"}}, Trouble.REFUSED),
        (400, {"error": {"message": "prompt is too long: 9000 tokens > 8000 maximum"}}, Trouble.TOO_LONG),
        (422, [{"loc": ["body", "tools"], "msg": "extra fields not permitted"}], Trouble.REFUSED),
        (500, {"error": {"message": "does not match the expected peg-native format"}}, Trouble.GARBLED),
        (302, "", Trouble.UNREACHABLE),
    ],
)
def test_what_waiting_does_not_mend_is_told_at_once(status: int, body: object, trouble: Trouble) -> None:
    play = refuses(status, body, location="http://example.invalid/")
    with model_endpoint(play) as endpoint, pytest.raises(ModelError) as caught:
        chat_at(endpoint.base_url).complete(asking(), deadline_s=10)
    assert (caught.value.trouble, caught.value.status, endpoint.n_requests) == (trouble, status, 1)


@pytest.mark.parametrize(
    "play",
    [
        sends(b'{"choices": [{"mess'),
        sends(b"<html>welcome</html>", kind="text/html"),
        sends(b'{"choices": "none"}'),
        sends(b"[]"),
        sends(b"\xff\xfe\x00", kind="application/octet-stream"),
        sends(b"[" * 5_000),
        sends(completion({"content": "cut"}, finish=None)),
        sends(b"packed", content_encoding="gzip"),
    ],
)
@pytest.mark.parametrize("streamed", [False, True])
def test_what_is_no_answer_is_garbled_and_is_not_paid_for_again(play: Play, streamed: bool) -> None:
    on_text = (lambda text: None) if streamed else None
    with model_endpoint(play) as endpoint, pytest.raises(ModelError) as caught:
        chat_at(endpoint.base_url).complete(asking(), deadline_s=10, on_text=on_text)
    assert (caught.value.trouble, endpoint.n_requests) == (Trouble.GARBLED, 1)


def test_a_stream_that_ends_before_the_answer_does_is_garbled() -> None:
    error = trouble_with(streams([{"content": "good"}], finish=None), streamed=True)
    assert error.trouble is Trouble.GARBLED
    assert "cut off before its end" in str(error)


def test_an_error_in_the_middle_of_a_stream_is_told_in_its_own_words() -> None:
    broken = b'data: {"error": {"code": 400, "message": "the request exceeds the available context size"}}\n\n'
    play = sends(chunk({"content": "good"}) + broken, kind="text/event-stream")
    assert trouble_with(play, streamed=True).trouble is Trouble.TOO_LONG


def test_an_endpoint_that_is_not_there_is_unreachable_and_the_sentence_says_what_to_do() -> None:
    with nobody() as port, pytest.raises(ModelError) as caught:
        chat_at(f"http://127.0.0.1:{port}/v1").complete(asking(), deadline_s=10)
    assert caught.value.trouble is Trouble.UNREACHABLE
    assert "is it running, and is model.base_url right?" in str(caught.value)


def test_a_server_that_speaks_something_else_is_told_as_such() -> None:
    import socketserver

    class Gruff(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(65536)
            self.request.sendall(b"220 mail.example ESMTP\r\n\r\n")

    with serving(socketserver.ThreadingTCPServer(("127.0.0.1", 0), Gruff)) as port, pytest.raises(ModelError) as caught:
        chat_at(f"http://127.0.0.1:{port}/v1").complete(asking(), deadline_s=10)
    assert caught.value.trouble is Trouble.UNREACHABLE
    assert "does not speak HTTP" in str(caught.value)


def test_a_key_that_the_endpoint_repeats_is_not_shown() -> None:
    key = "my-own-very-secret-key"
    play = refuses(401, {"error": {"message": f"Incorrect API key provided: {key}"}})
    with model_endpoint(play) as endpoint, pytest.raises(ModelError) as caught:
        chat_at(endpoint.base_url, key=key).complete(asking(), deadline_s=10)
    assert key not in str(caught.value)
    assert caught.value.trouble is Trouble.UNAUTHORIZED


def test_the_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with model_endpoint(says("direct")) as endpoint:
        assert chat_at(endpoint.base_url).complete(asking(), deadline_s=10).text == "direct"


@pytest.mark.parametrize(
    ("base_url", "allowed"), [("https://models.example/v1", Calls.LOOPBACK), ("http://127.0.0.1:9/v1", Calls.FORBID)]
)
def test_a_call_that_the_guard_forbids_is_not_made(base_url: str, allowed: Calls) -> None:
    with pytest.raises(ModelError) as caught:
        chat_at(base_url, allowed=allowed).complete(asking(), deadline_s=10)
    assert caught.value.trouble is Trouble.FORBIDDEN


def test_a_limit_of_money_that_does_not_count_a_model_is_said_once(tmp_path: Path) -> None:
    store = AgentStore.open(tmp_path)
    model = {"name": "tiny", "base_url": "http://127.0.0.1:9/v1"}
    task = a_task(budgets={"trials": 6, "cost_usd": 1}, model=model)
    session_id = store.create_session(task).session_id
    writer = FencedWriter(store, session_id, store.claim(session_id, os.getpid()))
    opened = open_model(task, tmp_path, writer, environ={"NIGHTLAB_MODEL_CALLS": "forbid"})
    with pytest.raises(ModelError) as caught:
        opened.complete(asking(), deadline_s=1)
    assert caught.value.trouble is Trouble.FORBIDDEN
    open_model(task, tmp_path, writer, environ={})
    said = [line.text for line in store.activity(session_id) if "does not count the model tiny" in line.text]
    assert len(said) == 1
    assert "model: {price: {prompt: ..., completion: ...}}" in said[0]


class Word(BaseModel):
    """One word."""

    word: str


def test_a_session_asks_the_model_that_its_task_names_and_remembers_how_it_answered(tmp_path: Path) -> None:
    store = AgentStore.open(tmp_path)
    prompt = prompts.Rendered(system="", user="Say a word.", name="check", version="v1")
    with model_endpoint(says("no word"), says('{"word": "hello"}')) as endpoint:
        task = a_task(model={"name": "tiny", "base_url": endpoint.base_url, "rung": "schema"})
        session_id = store.create_session(task).session_id
        writer = FencedWriter(store, session_id, store.claim(session_id, os.getpid()))
        with ExitStack() as until:
            asker = open_asker(task, writer, folder=tmp_path, until=until, running_device_seconds=lambda: 0.0)
            assert asker is not None
            asked = asker.ask(prompt, Word)
    assert asked.value == Word(word="hello")
    calls = model_calls_of(store, session_id)
    assert [(call.rung, call.outcome) for call in calls] == [("schema", "unusable"), ("schema", "used")]
    told = [tried(call.rung, call.outcome, call.at) for call in calls]
    assert [(one.rung, one.outcome) for one in told if one] == [("schema", "unusable"), ("schema", "used")]
    assert store.session(session_id).tokens == 36


def test_a_session_begins_by_the_rung_on_which_an_earlier_one_with_the_same_model_ended(tmp_path: Path) -> None:
    store = AgentStore.open(tmp_path)
    prompt = prompts.Rendered(system="", user="Say a word.", name="check", version="v1")

    def rung_of_first_call(name: str) -> str | None:
        task = a_task(model={"name": name, "base_url": endpoint.base_url})
        session_id = store.create_session(task).session_id
        writer = FencedWriter(store, session_id, store.claim(session_id, os.getpid()))
        with ExitStack() as until:
            asker = open_asker(task, writer, folder=tmp_path, until=until, running_device_seconds=lambda: 0.0)
            assert asker is not None
            assert asker.ask(prompt, Word).value == Word(word="hello")
        return model_calls_of(store, session_id)[0].rung

    no_tools = refuses(400, "tools are not supported by this model")
    with model_endpoint(no_tools, no_tools, says('{"word": "hello"}')) as endpoint:
        rungs = [rung_of_first_call(name) for name in ("tiny", "tiny", "tiny", "another")]
    assert rungs == ["tools", "schema", "schema", "tools"]


def test_a_model_that_can_not_be_opened_is_told_and_the_session_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    store = AgentStore.open(tmp_path)
    task = a_task(model={"name": "tiny"})
    session_id = store.create_session(task).session_id
    writer = FencedWriter(store, session_id, store.claim(session_id, os.getpid()))
    with ExitStack() as until:
        assert open_asker(task, writer, folder=tmp_path, until=until, running_device_seconds=lambda: 0.0) is None
    said = store.activity(session_id)[-1].text
    assert said.startswith("the session goes on without its model: there is no key for")
