"""The client's transport: every foreign exception has a translation, and only what is safe is sent again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from runtime_client.client import RuntimeClient
from runtime_client.errors import (
    CLASS_BY_KIND,
    Conflict,
    Forbidden,
    InvalidSpec,
    NotFound,
    RuntimeClientError,
    ServerFault,
    TimedOut,
    Unreachable,
)
from runtime_client.models import ErrorKind, JobSpec, NewRun, RunUpdate
from runtime_client.transport import EXCEPTION_TABLE, FOREIGN, translate

Handler = Callable[[httpx.Request], httpx.Response]


def client_of(handler: Handler, *, n_tries: int = 4) -> RuntimeClient:
    return RuntimeClient("http://127.0.0.1:9", "t", transport=httpx.MockTransport(handler), n_tries=n_tries)


def foreign_classes() -> Iterator[type[Exception]]:
    for name in dir(httpx):
        found = getattr(httpx, name)
        if isinstance(found, type) and issubclass(found, Exception) and found is not httpx.HTTPStatusError:
            yield found


@pytest.mark.parametrize("foreign", list(foreign_classes()), ids=lambda found: found.__name__)
def test_every_exception_of_httpx_has_a_translation(foreign: type[Exception]) -> None:
    assert issubclass(foreign, FOREIGN)
    needs_no_argument = (httpx.StreamConsumed, httpx.ResponseNotRead, httpx.RequestNotRead, httpx.StreamClosed)
    error = foreign() if issubclass(foreign, needs_no_argument) else foreign("seen")
    ours = translate(error, "http://x")
    assert isinstance(ours, RuntimeClientError)
    assert "http://x" in ours.message


def test_no_line_of_the_table_is_hidden_by_an_earlier_one() -> None:
    for position, (foreign, *_) in enumerate(EXCEPTION_TABLE):
        assert not any(issubclass(foreign, earlier) for earlier, *_ in EXCEPTION_TABLE[:position]), foreign


@pytest.mark.parametrize("kind", list(ErrorKind))
def test_every_kind_of_error_becomes_its_class(kind: ErrorKind) -> None:
    error = {"code": "c", "kind": kind.value, "message": "m", "retryable": False, "path": "a.b"}

    def answer(_: httpx.Request) -> httpx.Response:
        return httpx.Response(400, json={"v": 1, "data": None, "error": error})

    with pytest.raises(CLASS_BY_KIND[kind]) as raised:
        client_of(answer).info()
    assert (raised.value.code, raised.value.path, raised.value.message) == ("c", "a.b", "m")


@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, Forbidden), (403, Forbidden), (404, NotFound), (409, Conflict), (422, InvalidSpec), (502, ServerFault)],
)
@pytest.mark.parametrize("content", [b"<html>", b"", b"[]", b'{"detail": "x"}', b'{"v": 1, "error": {"x": 1}}'])
def test_an_answer_that_is_not_ours_says_so(status: int, kind: type[RuntimeClientError], content: bytes) -> None:
    with pytest.raises(kind, match="is it the runtime") as raised:
        client_of(lambda _: httpx.Response(status, content=content)).info()
    assert raised.value.code == "not_our_server"


def test_data_of_another_version_is_a_server_fault() -> None:
    with pytest.raises(ServerFault, match="different versions"):
        client_of(lambda _: httpx.Response(200, json={"v": 1, "data": {"version": 1}, "error": None})).info()


class Flaky:
    """Fails a number of times, then answers with an error that names the request."""

    def __init__(self, n_failures: int, failure: Exception) -> None:
        self.left = n_failures
        self.failure = failure
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        if self.left:
            self.left -= 1
            raise self.failure
        error = {"code": "arrived", "kind": "conflict", "message": "m"}
        return httpx.Response(409, json={"v": 1, "data": None, "error": error})


SPEC = JobSpec(experiment_name="e", command="true")
CALLS: dict[str, Callable[[RuntimeClient], object]] = {
    "info": lambda client: client.info(),
    "jobs": lambda client: client.jobs(),
    "submit": lambda client: client.submit(SPEC),
    "submit_many": lambda client: client.submit_many([SPEC]),
    "create_run": lambda client: client.create_run(NewRun(experiment_name="e", run_name="r", idempotency_token="t")),
    "log_artifact": lambda client: client.log_artifact("r", "a", b""),
    "cancel": lambda client: client.cancel("j1"),
    "update_run": lambda client: client.update_run("r", RunUpdate()),
}
REPEATABLE = {"info", "jobs", "submit", "submit_many", "create_run", "log_artifact"}


@pytest.mark.parametrize("name", CALLS)
def test_a_broken_connection_repeats_only_what_is_safe_to_repeat(name: str) -> None:
    server = Flaky(2, httpx.ReadError("reset"))
    with pytest.raises(Conflict if name in REPEATABLE else Unreachable):
        CALLS[name](client_of(server))
    assert len(server.requests) == (3 if name in REPEATABLE else 1)


@pytest.mark.parametrize("name", CALLS)
def test_what_was_never_sent_is_sent_again(name: str) -> None:
    server = Flaky(2, httpx.ConnectError("refused"))
    with pytest.raises(Conflict):
        CALLS[name](client_of(server))
    assert len(server.requests) == 3


def test_tries_are_bounded() -> None:
    server = Flaky(99, httpx.ConnectError("refused"))
    with pytest.raises(Unreachable, match="start it with: nightlab up"):
        client_of(server, n_tries=3).info()
    assert len(server.requests) == 3


def test_a_timeout_is_not_repeated() -> None:
    server = Flaky(99, httpx.ReadTimeout("slow"))
    with pytest.raises(TimedOut) as raised:
        client_of(server).info()
    assert (len(server.requests), raised.value.retryable) == (1, True)


def test_a_submission_is_repeated_with_one_token() -> None:
    server = Flaky(1, httpx.ReadError("reset"))
    with pytest.raises(Conflict):
        client_of(server).submit(SPEC)
    tokens = [json.loads(request.content)["idempotency_token"] for request in server.requests]
    assert tokens[0] is not None
    assert tokens[0] == tokens[1]


def test_a_token_of_the_callers_is_kept() -> None:
    server = Flaky(0, httpx.ReadError(""))
    with pytest.raises(Conflict):
        client_of(server).submit(SPEC.model_copy(update={"idempotency_token": "mine"}))
    assert json.loads(server.requests[0].content)["idempotency_token"] == "mine"


def test_many_jobs_are_sent_in_pieces() -> None:
    sizes: list[int] = []

    def answer(request: httpx.Request) -> httpx.Response:
        n = len(json.loads(request.content)["jobs"])
        sizes.append(n)
        error = {"code": "c", "kind": "invalid", "message": "m"}
        return httpx.Response(200, json={"v": 1, "data": [{"error": error}] * n})

    assert len(client_of(answer).submit_many([SPEC] * 2500)) == 2500
    assert sizes == [1000, 1000, 500]


def test_ids_can_not_leave_their_place_in_the_path() -> None:
    seen: list[bytes] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.url.raw_path)
        return httpx.Response(404, json={"v": 1, "error": {"code": "c", "kind": "not_found", "message": "m"}})

    with pytest.raises(NotFound):
        client_of(answer).job("j1?x=1&..")
    assert seen == [b"/v1/jobs/j1%3Fx%3D1%26.."]


@pytest.mark.parametrize("url", ["ftp://x", "127.0.0.1:7070", "http://[", "http://127.0.0.1:99999999"])
def test_a_bad_address_is_said_to_be_one(url: str) -> None:
    with pytest.raises(Unreachable):
        RuntimeClient(url, "t", n_tries=1).info()


def test_nobody_at_the_address(tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match=r"nobody answers at http://127\.0\.0\.1:1 "):
        RuntimeClient("http://127.0.0.1:1", "t", n_tries=1).info()


def test_a_home_without_a_server_says_how_to_start_one(tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match="start it with: nightlab up"):
        RuntimeClient.from_home(tmp_path)
    (tmp_path / "server.json").write_text("{")
    with pytest.raises(Unreachable, match="start it with: nightlab up"):
        RuntimeClient.from_home(tmp_path)


def test_a_home_without_a_token_is_forbidden(tmp_path: Path) -> None:
    (tmp_path / "server.json").write_text('{"url": "http://127.0.0.1:1", "pid": 1}')
    with pytest.raises(Forbidden, match="token"):
        RuntimeClient.from_home(tmp_path)


def test_events_begin_again_after_the_last_one_seen() -> None:
    def message(seq: int) -> str:
        event = {"seq": seq, "type": "job_submitted", "at": 0.0, "actor": "a"}
        return f"id: {seq}\nevent: job_submitted\ndata: {json.dumps(event)}\n\n"

    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.params["since"])
        if len(asked) == 2:
            raise httpx.ConnectError("refused")
        since = int(asked[-1])
        text = ": hello\n\n" + "".join(message(seq) for seq in range(since + 1, since + 3))
        return httpx.Response(200, text=text, headers={"Content-Type": "text/event-stream"})

    stream = client_of(answer).events(since=5)
    assert [next(stream).seq for _ in range(4)] == [6, 7, 8, 9]
    assert asked[:3] == ["5", "7", "7"]


def test_a_sign_of_life_between_events_is_no_event() -> None:
    event = '{"seq": %d, "type": "t", "at": 1.0, "actor": "a"}'
    lines = f": connected\n\nid: 1\ndata: {event % 1}\n\n: still here\n\nid: 2\ndata: {event % 2}\n\n: still here\n\n"

    def answer(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"Content-Type": "text/event-stream"}, text=lines)

    events = client_of(answer).events(since=0)
    assert [next(events).seq, next(events).seq] == [1, 2]


def test_the_first_connection_of_a_stream_may_fail() -> None:
    with pytest.raises(Unreachable):
        next(client_of(Flaky(99, httpx.ConnectError("refused"))).events(since=0))


def test_a_bounded_wait_bears_a_server_that_is_some_seconds_late() -> None:
    waits: list[float] = []

    def answer(request: httpx.Request) -> httpx.Response:
        waits.append(request.extensions["timeout"]["read"])
        return httpx.Response(200, headers={"Content-Type": "text/event-stream"}, text="")

    assert list(client_of(answer).events(since=0, wait_s=0.01)) == []
    assert 10.0 <= waits[0] <= 10.1


def test_a_refused_stream_is_not_asked_for_again() -> None:
    server = Flaky(0, httpx.ConnectError(""))
    with pytest.raises(Conflict):
        next(client_of(server).events(since=0))
    assert len(server.requests) == 1


def test_a_stream_of_something_else_is_a_server_fault() -> None:
    with pytest.raises(ServerFault):
        next(client_of(lambda _: httpx.Response(200, text="hello")).events(since=0))


@pytest.mark.parametrize("name", ["", ".", "..", "j1/logs", "../nodes"])
def test_an_id_that_would_be_another_path_is_asked_of_nobody(name: str) -> None:
    client = client_of(lambda request: pytest.fail(f"asked {request.url}"))
    for ask in (client.job, client.cancel, client.explain, client.logs, client.metrics, client.run):
        with pytest.raises(NotFound, match="no id"):
            ask(name)


def test_an_answer_of_mlflow_that_is_none_is_an_error_of_ours() -> None:
    def refuse(_: httpx.Request) -> httpx.Response:
        return httpx.Response(503, json={"error_code": "TEMPORARILY_UNAVAILABLE", "message": "MLflow is away"})

    with pytest.raises(ServerFault, match="MLflow is away") as caught:
        client_of(refuse).list_artifacts("r1")
    assert caught.value.retryable
    for content in (b"<html>", b"[]", b'{"files": [{"path": 7}]}'):
        with pytest.raises(ServerFault):
            client_of(lambda _, content=content: httpx.Response(200, content=content)).list_artifacts("r1")  # type: ignore[misc]
