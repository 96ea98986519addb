"""An HTTP client that ends by a deadline and within bounds, whatever the other side does.

Timeouts of HTTP clients hold for one read: a server that sends a byte a second is never timed out, and one that never
stops fills the memory. Here every wait on the socket is cut to what is left of the call, and what comes is counted. No
proxy, no redirect, no compression, no connection that is used twice; and no host that the guard forbids.
Imports the HTTP stack of the `openai` client: import it where a call is made, not at the start of a program.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import httpcore2
import httpx2

from agent.llm.guard import Calls, check_call

CONNECT_S = 10.0
"""For a connection to one address, at most."""


class OutOfTime(httpx2.ReadTimeout):
    """The deadline of the call has come."""


class TooMuch(httpx2.RemoteProtocolError):
    """More bytes came than a call may bring."""


class BrokenOff(httpx2.RemoteProtocolError):
    """The connection ended in the middle of an answer."""


@dataclass(slots=True)
class _Call:
    ends_at: float
    bytes_left: int


class Bounds:
    """Of the calls that are made now, one for each thread."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._of_thread = threading.local()

    @contextmanager
    def of_call(self, ends_at: float, max_bytes: int) -> Iterator[None]:
        """What this thread reads and writes inside ends then, and brings no more than that."""
        self._of_thread.call = _Call(ends_at, max_bytes)
        try:
            yield
        finally:
            del self._of_thread.call

    def left_s(self) -> float:
        """
        Raises:
            OutOfTime: nothing is left.
        """
        left = self._call().ends_at - self._monotonic()
        if left <= 0:
            raise OutOfTime("the deadline of the call has come")
        return left

    def count(self, n_bytes: int) -> None:
        """
        Raises:
            TooMuch: these are more than may come.
        """
        call = self._call()
        call.bytes_left -= n_bytes
        if call.bytes_left < 0:
            raise TooMuch("more bytes came than one call may bring")

    def _call(self) -> _Call:
        call: _Call = self._of_thread.call
        return call


class _Stream(httpcore2.NetworkStream):
    """Implements the stream of a connection over another one, within the bounds of the call."""

    def __init__(self, inner: httpcore2.NetworkStream, bounds: Bounds, lines: Lines) -> None:
        self._inner = inner
        self._bounds = bounds
        self._lines = lines
        lines.opened(self)

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        with self._in_time():
            data = self._inner.read(max_bytes, self._bounds.left_s())
        self._bounds.count(len(data))
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        with self._in_time():
            self._inner.write(buffer, self._bounds.left_s())

    def close(self) -> None:
        self._lines.closed(self)
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        with self._in_time():
            secured = self._inner.start_tls(ssl_context, server_hostname, self._bounds.left_s())
        self._lines.closed(self)
        return _Stream(secured, self._bounds, self._lines)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)

    def hang_up(self) -> None:
        """End the waits of another thread on it."""
        line = self._inner.get_extra_info("socket")
        if isinstance(line, socket.socket):
            with suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)

    @contextmanager
    def _in_time(self) -> Iterator[None]:
        try:
            yield
        except httpcore2.TimeoutException as error:
            raise OutOfTime("the deadline of the call has come") from error


class Lines:
    """The connections that are open, so that they can be hung up from another thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: set[_Stream] = set()
        self._is_closed = False

    def opened(self, stream: _Stream) -> None:
        with self._lock:
            self._open.add(stream)
            is_late = self._is_closed
        if is_late:
            stream.hang_up()

    def closed(self, stream: _Stream) -> None:
        with self._lock:
            self._open.discard(stream)

    def hang_up(self) -> None:
        with self._lock:
            self._is_closed = True
            still_open = list(self._open)
        for stream in still_open:
            stream.hang_up()


class _Backend(httpcore2.NetworkBackend):
    def __init__(self, bounds: Bounds, lines: Lines, calls: Calls) -> None:
        self._inner = httpcore2.SyncBackend()
        self._bounds = bounds
        self._lines = lines
        self._calls = calls

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        check_call(host, self._calls)
        limit_s = min(self._bounds.left_s(), CONNECT_S)
        opened = self._inner.connect_tcp(host, port, limit_s, local_address, socket_options)
        return _Stream(opened, self._bounds, self._lines)


class BoundedTransport(httpx2.BaseTransport):
    """Implements the transport of `httpx2`."""

    def __init__(self, bounds: Bounds, calls: Calls, *, is_secure: bool) -> None:
        """
        Args:
            is_secure: addresses begin with `https`. Certificates take a while to load.
        """
        self._lines = Lines()
        self._pool = httpcore2.ConnectionPool(
            ssl_context=httpx2.create_ssl_context() if is_secure else None,
            max_connections=None,
            max_keepalive_connections=0,
            network_backend=_Backend(bounds, self._lines, calls),
        )

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        url = request.url
        asked = httpcore2.Request(
            method=request.method,
            url=httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=request.headers.raw,
            content=request.read(),
        )
        with _of_httpx():
            told = self._pool.handle_request(asked)
        assert isinstance(told.stream, Iterable)
        return httpx2.Response(
            told.status, headers=told.headers, stream=_Body(told.stream, told.close), extensions=told.extensions
        )

    def hang_up(self) -> None:
        """End all calls that are under way in other threads."""
        self._lines.hang_up()

    def close(self) -> None:
        self._pool.close()


class _Body(httpx2.SyncByteStream):
    def __init__(self, stream: Iterable[bytes], close: Callable[[], None]) -> None:
        self._stream = stream
        self._close = close

    def __iter__(self) -> Iterator[bytes]:
        try:
            with _of_httpx():
                yield from self._stream
        except (OutOfTime, TooMuch):
            raise
        except (httpx2.NetworkError, httpx2.ProtocolError) as error:
            raise BrokenOff(f"it broke off ({error})") from error

    def close(self) -> None:
        self._close()


@contextmanager
def _of_httpx() -> Iterator[None]:
    """The errors of the inner stack as those of the outer one."""
    try:
        yield
    except httpcore2.ConnectTimeout as error:
        raise httpx2.ConnectTimeout(str(error)) from error
    except httpcore2.ConnectError as error:
        raise httpx2.ConnectError(str(error)) from error
    except httpcore2.UnsupportedProtocol as error:
        raise httpx2.UnsupportedProtocol(str(error)) from error
    except httpcore2.NetworkError as error:
        raise httpx2.ReadError(str(error)) from error
    except httpcore2.ProtocolError as error:
        raise httpx2.RemoteProtocolError(str(error)) from error
