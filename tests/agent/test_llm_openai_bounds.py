"""The adapter against endpoints on loopback that never end, or send more than anybody can hold."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from loopback_servers import silence
from model_endpoint import chunk, completion, drips, model_endpoint, refuses, sends
from test_llm_openai_chat import asking, chat_at, trouble_with

from agent.llm.answers import MAX_CHARS
from agent.llm.chat import Finish, ModelError, Trouble

pytestmark = pytest.mark.acceptance


def test_a_wait_beyond_the_deadline_is_not_begun() -> None:
    began = time.monotonic()
    error = trouble_with(refuses(429, {"error": {"message": "slow down"}}, retry_after="60"), deadline_s=5)
    assert time.monotonic() - began < 3
    assert error.trouble is Trouble.RATE_LIMITED
    assert "wait 60 s" in str(error)


def test_an_answer_of_a_megabyte_is_cut_and_counts_as_cut() -> None:
    with model_endpoint(sends(completion({"content": "x" * 2**20}))) as endpoint:
        reply = chat_at(endpoint.base_url).complete(asking(), deadline_s=20)
    assert (len(reply.text), reply.finish) == (MAX_CHARS, Finish.LENGTH)


def test_a_stream_without_end_is_left_when_enough_has_come() -> None:
    def play(answering: Any) -> None:
        answering.begin_stream()
        while not answering.over.is_set():
            answering.wfile.write(chunk({"content": "x" * 10_000}))

    with model_endpoint(play) as endpoint:
        reply = chat_at(endpoint.base_url).complete(asking(), deadline_s=20, on_text=lambda text: None)
    assert (len(reply.text), reply.finish) == (MAX_CHARS, Finish.LENGTH)


def test_more_bytes_than_a_call_may_bring_are_garbled() -> None:
    def play(answering: Any) -> None:
        answering.begin_stream()
        while not answering.over.is_set():
            answering.wfile.write(b":" + b" " * 2**20)

    error = trouble_with(play, deadline_s=20, streamed=True)
    assert error.trouble is Trouble.GARBLED
    assert "more bytes came than one call may bring" in str(error)


@pytest.mark.parametrize("data", [b"HTTP/1.1 200 OK\r\nx-slow: " + b"y" * 10_000, None], ids=["head", "body"])
@pytest.mark.parametrize("streamed", [False, True])
def test_one_deadline_holds_against_a_byte_at_a_time(data: bytes | None, streamed: bool) -> None:
    def body(answering: Any) -> None:
        answering.begin_stream()
        drips(0.02)(answering)

    began = time.monotonic()
    error = trouble_with(body if data is None else drips(0.02, data), deadline_s=0.2, streamed=streamed)
    assert error.trouble is Trouble.TIMED_OUT
    assert time.monotonic() - began < 2


def test_one_deadline_holds_for_all_tries_together() -> None:
    def late(answering: Any) -> None:
        answering.over.wait(0.08)
        refuses(503, "busy")(answering)

    assert trouble_with(late, deadline_s=0.2).trouble in (Trouble.TIMED_OUT, Trouble.FAILED)


def test_an_endpoint_that_never_speaks_is_left_at_the_deadline() -> None:
    with silence() as port, pytest.raises(ModelError) as caught:
        chat_at(f"http://127.0.0.1:{port}/v1").complete(asking(), deadline_s=0.1)
    assert caught.value.trouble is Trouble.TIMED_OUT


def test_closing_ends_a_call_that_waits_in_another_thread() -> None:
    came: list[Trouble] = []
    asked = threading.Event()

    def hang(answering: Any) -> None:
        asked.set()
        answering.over.wait(30)

    with model_endpoint(hang) as endpoint:
        chat = chat_at(endpoint.base_url, wait_s=30)

        def call() -> None:
            try:
                chat.complete(asking(), deadline_s=60)
            except ModelError as error:
                came.append(error.trouble)

        thread = threading.Thread(target=call)
        thread.start()
        assert asked.wait(10)
        chat.close()
        thread.join(10)
    assert came == [Trouble.UNREACHABLE]
