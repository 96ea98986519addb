"""A FastAPI app served on loopback by a thread, as long as a test needs it."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import uvicorn

T = TypeVar("T")


class Served:
    """`start` binds and waits for the first answer; `stop` closes every connection."""

    def __init__(self, app: Any, port: int = 0) -> None:
        self._socket = socket.socket(proto=socket.IPPROTO_TCP)  # without it asyncio leaves Nagle on: 40 ms a call
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("127.0.0.1", port))
        self.port: int = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        config = uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True)

    def start(self) -> None:
        self._thread.start()
        wait_for(lambda: self._server.started, "the server did not start")

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(timeout=10)
        self._socket.close()


def wait_for(condition: Callable[[], T], message: str, timeout_s: float = 15.0) -> T:
    """Poll until the condition is true; its value."""
    deadline = time.monotonic() + timeout_s
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, message
        time.sleep(0.02)
