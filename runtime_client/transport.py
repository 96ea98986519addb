"""How requests reach the server: the one place that knows httpx.

Turns every answer into data or into one of our exceptions, and sends again only what is safe to send again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import httpx
from pydantic import ValidationError

from .errors import RuntimeClientError, ServerFault, TimedOut, Unreachable, from_body
from .models import ErrorBody, ErrorKind

QueryValue = str | int | float
Query = Mapping[str, QueryValue | Sequence[QueryValue]]

EXCEPTION_TABLE: tuple[tuple[type[Exception], type[RuntimeClientError], str, bool], ...] = (
    (httpx.ConnectError, Unreachable, "unreachable", True),
    (httpx.ConnectTimeout, Unreachable, "unreachable", True),
    (httpx.PoolTimeout, TimedOut, "timed_out", True),
    (httpx.TimeoutException, TimedOut, "timed_out", True),
    (httpx.UnsupportedProtocol, Unreachable, "bad_address", False),
    (httpx.InvalidURL, Unreachable, "bad_address", False),
    (httpx.ProxyError, Unreachable, "unreachable", True),
    (httpx.NetworkError, Unreachable, "connection_lost", True),
    (httpx.ProtocolError, Unreachable, "connection_lost", True),
    (httpx.DecodingError, ServerFault, "not_understood", False),
    (httpx.TooManyRedirects, ServerFault, "not_understood", False),
    (httpx.HTTPError, ServerFault, "transport_failed", False),
    (httpx.StreamError, ServerFault, "transport_failed", False),
    (httpx.CookieConflict, ServerFault, "transport_failed", False),
)
"""Foreign exception, ours, code, retryable; the first match counts."""

FOREIGN = (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, httpx.CookieConflict)
"""The roots of everything that httpx raises."""

NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
"""After these, the server has seen nothing of the request."""

KIND_BY_STATUS: Mapping[int, ErrorKind] = {
    400: ErrorKind.INVALID,
    401: ErrorKind.FORBIDDEN,
    402: ErrorKind.OVER_BUDGET,
    403: ErrorKind.FORBIDDEN,
    404: ErrorKind.NOT_FOUND,
    409: ErrorKind.CONFLICT,
    413: ErrorKind.INVALID,
    422: ErrorKind.INVALID,
    503: ErrorKind.UNAVAILABLE,
}
"""For answers without our envelope; every other status of 400 and above is a FAULT."""


def translate(error: Exception, base_url: str) -> RuntimeClientError:
    """Our exception for one of httpx's."""
    for foreign, ours, code, retryable in EXCEPTION_TABLE:
        if isinstance(error, foreign):
            detail = str(error) or type(error).__name__
            if ours is TimedOut:
                message = f"{base_url} did not answer in time ({detail}); try again, or look at the server's log"
            elif code == "unreachable":
                message = f"nobody answers at {base_url} ({detail}); start it with: nightlab up"
            else:
                message = f"talking to {base_url} failed: {detail}"
            return ours(message, code=code, retryable=retryable)
    raise error


class Transport:
    """Sends requests to one server with one token. May be shared between threads."""

    def __init__(
        self,
        base_url: str,
        token: str,
        *,
        transport: httpx.BaseTransport | None = None,
        timeout_s: float = 30.0,
        n_tries: int = 4,
    ) -> None:
        """`n_tries` bounds the tries of one request, the first included; pauses are 0.05 s, 0.1 s, 0.2 s, ..."""
        self.base_url = base_url.rstrip("/")
        self._n_tries = n_tries
        try:
            self._http = httpx.Client(
                base_url=self.base_url,
                headers={"Authorization": f"Bearer {token}"},
                timeout=httpx.Timeout(timeout_s, connect=min(timeout_s, 5.0)),
                transport=transport,
                trust_env=False,
                verify=self.base_url.startswith("https:"),  # reading the certificates costs 30 ms
                limits=httpx.Limits(max_connections=64, max_keepalive_connections=16, keepalive_expiry=4.0),
            )
        except FOREIGN as error:
            raise translate(error, self.base_url) from error

    def close(self) -> None:
        self._http.close()

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        is_repeatable: bool | None = None,
    ) -> Any:
        """Return the `data` of the answer.

        Args:
            is_repeatable: sending it twice does what sending it once does; None: true for GET alone.

        Raises:
            RuntimeClientError: as the server or the transport says.
        """
        repeat = method == "GET" if is_repeatable is None else is_repeatable
        headers = {} if body is None else {"Content-Type": content_type}
        answer = self._answer(method, path, query, body, headers, repeat)
        return _data_of(answer.status_code, answer.content, self.base_url)

    def read_mlflow(self, path: str, query: Query) -> Any:
        """The answer to one of MLflow's own calls, which the gateway gives without our envelope.

        Raises:
            RuntimeClientError: as the gateway or the transport says.
        """
        answer = self._answer("GET", path, query, None, {}, True)
        return _mlflow_answer(answer.status_code, answer.content, self.base_url)

    def _answer(
        self, method: str, path: str, query: Query | None, body: bytes | None, headers: dict[str, str], repeat: bool
    ) -> httpx.Response:
        for n_try in range(1, self._n_tries + 1):
            try:
                answer = self._http.request(method, path, params=_params(query), content=body, headers=headers)
            except FOREIGN as error:
                ours = translate(error, self.base_url)
                may_repeat = repeat and ours.code != "timed_out"
                if n_try == self._n_tries or not (ours.retryable and (may_repeat or isinstance(error, NEVER_SENT))):
                    raise ours from error
                time.sleep(0.05 * 2 ** (n_try - 1))
                continue
            return answer
        raise AssertionError("a request is tried at least once")

    @contextmanager
    def stream(
        self, path: str, *, query: Query | None = None, headers: Mapping[str, str] | None = None, read_timeout_s: float
    ) -> Iterator[httpx.Response]:
        """An open answer whose body is read piece by piece. What reading raises is translated too."""
        timeout = httpx.Timeout(5.0, read=read_timeout_s)
        try:
            with self._http.stream(
                "GET", path, params=_params(query), headers=dict(headers or {}), timeout=timeout
            ) as answer:
                if answer.status_code >= 300:
                    _data_of(answer.status_code, answer.read(), self.base_url)
                yield answer
        except FOREIGN as error:
            raise translate(error, self.base_url) from error


def _params(query: Query | None) -> httpx.QueryParams | None:
    if query is None:
        return None
    pairs: list[tuple[str, str | int | float | bool | None]] = []
    for name, value in query.items():
        values = [value] if isinstance(value, str | int | float) else value
        pairs.extend((name, str(item)) for item in values)
    return httpx.QueryParams(pairs)


def _data_of(status: int, content: bytes, base_url: str) -> Any:
    """The envelope's data, or the exception that its error stands for."""
    from pydantic_core import from_json

    try:
        envelope = from_json(content)
    except ValueError:
        envelope = None
    if not isinstance(envelope, dict) or not isinstance(envelope.get("v"), int):
        _raise_foreign_answer(status, content, base_url)
    if envelope.get("error") is None:
        return envelope.get("data")
    try:
        body = ErrorBody.model_validate(envelope["error"])
    except ValidationError:
        _raise_foreign_answer(status, content, base_url)
    raise from_body(body)


def _mlflow_answer(status: int, content: bytes, base_url: str) -> Any:
    from pydantic_core import from_json

    try:
        found = from_json(content)
    except ValueError:
        _raise_foreign_answer(status, content, base_url)
    if status < 400:
        return found
    said = found.get("message") if isinstance(found, dict) else None
    if not isinstance(said, str):
        _raise_foreign_answer(status, content, base_url)
    kind = KIND_BY_STATUS.get(status, ErrorKind.FAULT)
    code, retryable = str(found.get("error_code", "mlflow_error")).lower(), kind is ErrorKind.UNAVAILABLE
    raise from_body(ErrorBody(code=code, kind=kind, message=said, retryable=retryable))


def _raise_foreign_answer(status: int, content: bytes, base_url: str) -> NoReturn:
    kind = KIND_BY_STATUS.get(status, ErrorKind.FAULT)
    seen = content[:200].decode("utf-8", "replace")
    raise from_body(
        ErrorBody(
            code="not_our_server",
            kind=kind,
            message=f"{base_url} answered {status} without our envelope; is it the runtime? It said: {seen!r}",
            retryable=kind is ErrorKind.UNAVAILABLE,
        )
    )
