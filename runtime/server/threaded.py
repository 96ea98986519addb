"""A real server on a thread of this process: for tests, notebooks and programs that want no second process."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeVar

from fastapi import FastAPI

from runtime.engines.contract import Engine
from runtime_client.client import RuntimeClient

from .app import create_app
from .config import ServerConfig
from .occupancy import remove_address, write_address
from .services import Services
from .serving import HttpServer, listen_at, url_of

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadedServer:
    config: ServerConfig
    """With the port that it listens at."""
    url: str
    token: str
    app: FastAPI
    _event_loop: asyncio.AbstractEventLoop

    @property
    def services(self) -> Services:
        services: Services = self.app.state.services
        return services

    def client(self, *, timeout_s: float = 30.0) -> RuntimeClient:
        return RuntimeClient(self.url, self.token, timeout_s=timeout_s)

    def on_loop(self, work: Callable[[], T]) -> T:
        """Run a function on the server's event loop and return its result."""

        async def call() -> T:
            return work()

        return asyncio.run_coroutine_threadsafe(call(), self._event_loop).result(timeout=30)


@contextmanager
def threaded_server(
    config: ServerConfig, *, engine: Engine | None = None, clock: Callable[[], float] | None = None
) -> Iterator[ThreadedServer]:
    """A server that listens at a free port when `config.port` is 0, and ends with the block.

    Raises:
        Exception: what keeps it from starting.
    """
    listener = listen_at(config)
    used = replace(config, port=int(listener.getsockname()[1]))
    app = create_app(used, engine=engine, clock=clock)
    is_listening = threading.Event()
    server = HttpServer(app, on_listening=is_listening.set)
    ends: list[BaseException | None] = []
    loops: list[asyncio.AbstractEventLoop] = []

    def work() -> None:
        try:
            asyncio.run(_serve(server, listener, loops))
            ends.append(None)
        except BaseException as error:  # noqa: BLE001 - it is raised again in the caller's thread
            ends.append(error)
        finally:
            is_listening.set()

    thread = threading.Thread(target=work, name="nightlab-server", daemon=True)
    thread.start()
    is_listening.wait()
    if ends and ends[0] is not None:
        raise ends[0]
    url = url_of(used)
    write_address(used.address_path, url=url, started_at=time.time(), mlflow_url=used.mlflow_url)
    try:
        yield ThreadedServer(config=used, url=url, token=app.state.keys.owner_token, app=app, _event_loop=loops[0])
    finally:
        server.stop()
        thread.join()
        remove_address(used.address_path)
        listener.close()


async def _serve(server: HttpServer, listener: socket.socket, loops: list[asyncio.AbstractEventLoop]) -> None:
    loops.append(asyncio.get_running_loop())
    await server.run_app([listener])
