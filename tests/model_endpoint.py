"""A model endpoint on loopback that plays a script: each request gets the next play, whatever it asks for.

It speaks the chat completions API as badly as real endpoints do: late, in pieces, cut off, with errors of any kind.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from loopback_servers import serving

Play = Callable[["Answering"], None]


class Answering(BaseHTTPRequestHandler):
    """One request, and what answers it."""

    protocol_version = "HTTP/1.1"
    asked: dict[str, Any]
    over: threading.Event
    """Set when the test is over: what hangs may end."""

    def whole(self, body: bytes, *, status: int = 200, kind: str = "application/json", **headers: str) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def begin_stream(self) -> None:
        """What follows are pieces, until the connection ends."""
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
        """Says nothing."""


class Endpoint:
    """What is running: where, and what was asked."""

    def __init__(self, port: int) -> None:
        self.base_url = f"http://127.0.0.1:{port}/v1"
        self.requests: list[dict[str, Any]] = []
        self.headers: list[Mapping[str, str]] = []

    @property
    def n_requests(self) -> int:
        return len(self.requests)


@contextmanager
def model_endpoint(*plays: Play) -> Iterator[Endpoint]:
    """Each request gets the next play; the last one stays."""
    lock, ended = threading.Lock(), threading.Event()

    class Playing(Answering):
        over = ended

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            with lock:
                at = min(endpoint.n_requests, len(plays) - 1)
                endpoint.requests.append(asked)
                endpoint.headers.append({name.lower(): value for name, value in self.headers.items()})
            self.asked = asked
            self.close_connection = True
            try:
                plays[at](self)
            except (BrokenPipeError, ConnectionResetError):
                return  # The other side has hung up, as some tests have it.

    server = ThreadingHTTPServer(("127.0.0.1", 0), Playing)
    endpoint = Endpoint(server.server_address[1])
    with serving(server):
        try:
            yield endpoint
        finally:
            ended.set()


def completion(
    message: Mapping[str, Any], *, finish: str | None = "stop", usage: tuple[int, int] | None = (11, 7)
) -> bytes:
    """The body of a whole answer."""
    body: dict[str, Any] = {
        "id": "chat-1",
        "object": "chat.completion",
        "created": 1,
        "model": "served-model",
        "choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}],
    }
    if usage is not None:
        body["usage"] = dict(zip(("prompt_tokens", "completion_tokens"), usage, strict=True))
    return json.dumps(body).encode()


def says(text: str, **how: Any) -> Play:
    """A whole answer; where it was asked to stream, it streams in two pieces."""

    def play(answering: Answering) -> None:
        if answering.asked.get("stream"):
            half = len(text) // 2
            streams([{"content": text[:half]}, {"content": text[half:]}], **how)(answering)
        else:
            answering.whole(completion({"content": text}, **how))

    return play


def calls(name: str, arguments: str) -> Play:
    """A whole answer that calls a tool."""
    call = {"id": "c1", "type": "function", "function": {"name": name, "arguments": arguments}}
    body = completion({"content": None, "tool_calls": [call]}, finish="tool_calls")
    return lambda answering: answering.whole(body)


def refuses(status: int, error: object, **headers: str) -> Play:
    """An error as the vendors send it; a text is sent as it is."""
    body = error if isinstance(error, str) else json.dumps(error)
    return lambda answering: answering.whole(body.encode(), status=status, **headers)


def sends(body: bytes, kind: str = "application/json", **headers: str) -> Play:
    return lambda answering: answering.whole(body, kind=kind, **headers)


def chunk(delta: Mapping[str, Any], finish: str | None = None) -> bytes:
    """One piece of a streamed answer."""
    body = {"model": "served-model", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    return b"data: " + json.dumps(body).encode() + b"\n\n"


def streams(
    deltas: Iterable[Mapping[str, Any]],
    *,
    finish: str | None = "stop",
    usage: tuple[int, int] | None = (11, 7),
) -> Play:
    """An answer in pieces; with `finish` of None it is cut off before its end."""

    def play(answering: Answering) -> None:
        answering.begin_stream()
        for delta in deltas:
            answering.wfile.write(chunk(delta))
        if finish is None:
            return
        answering.wfile.write(chunk({}, finish))
        if usage is not None and "stream_options" in answering.asked:
            told = dict(zip(("prompt_tokens", "completion_tokens"), usage, strict=True))
            answering.wfile.write(b"data: " + json.dumps({"choices": [], "usage": told}).encode() + b"\n\n")
        answering.wfile.write(b"data: [DONE]\n\n")

    return play


def drips(each_s: float, data: bytes = b"x" * 10_000) -> Play:
    """A byte each so many seconds, from the first byte of the head on, until the test is over."""

    def play(answering: Answering) -> None:
        for byte in data:
            if answering.over.wait(each_s):
                return
            answering.wfile.write(bytes([byte]))
            answering.wfile.flush()

    return play
