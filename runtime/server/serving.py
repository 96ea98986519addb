"""Runs the app with uvicorn: one process, one home, one port; says plainly what is in the way."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from types import FrameType

import uvicorn
from fastapi import FastAPI

from runtime.engines.launcher_link import LauncherUnavailable
from runtime.model.errors import CoreError
from runtime.store.writer import StoreFailed
from runtime_client.loopback import is_loopback

from .config import ServerConfig
from .occupancy import HomeOccupied, lock_home, remove_address, write_address

GOODBYE_S = 5
"""How long open requests may take at the end."""

IN_THE_WAY = (StoreFailed, CoreError, LauncherUnavailable, OSError, ValueError)
"""What may keep a server from starting; each says by itself what to do."""


class CannotServe(Exception):
    """The server can not start; the message says what to do."""


class HttpServer(uvicorn.Server):
    """uvicorn for one app: event streams end when it is told to stop, and somebody is told when it listens."""

    def __init__(self, app: FastAPI, *, on_listening: Callable[[], None] = lambda: None) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                lifespan="off",
                access_log=False,
                log_config=None,
                server_header=False,
                timeout_keep_alive=30,
                timeout_graceful_shutdown=GOODBYE_S,
            )
        )
        self._app = app
        self._on_listening = on_listening
        self._event_loop: asyncio.AbstractEventLoop | None = None
        self.is_broken = False
        """The loop gave up."""

    def stop(self) -> None:
        """Begin an orderly end; may be called from a signal handler or another thread."""
        self.should_exit = True
        if self._event_loop is not None:
            with suppress(RuntimeError):  # it has ended already
                self._event_loop.call_soon_threadsafe(self._app.state.services.hub.close)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit and sig == signal.SIGINT:
            self.force_exit = True
        self.stop()

    @contextmanager
    def heard_early(self) -> Iterator[None]:
        """Keep an order to end that comes while the app opens until it is open: uvicorn hears signals only then.

        What was started by then, the launcher, is ended by closing the app and by nobody else.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {sig: signal.signal(sig, self.handle_exit) for sig in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for sig, handler in before.items():
                signal.signal(sig, handler)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self._event_loop = asyncio.get_running_loop()
        self._on_listening()

    async def run_app(self, sockets: list[socket.socket]) -> None:
        """Open the app, serve until stopped, close it. Raises what keeps the app from opening."""
        self._app.state.on_broken = self._give_up
        self._app.state.on_parted = self.stop
        async with self._app.router.lifespan_context(self._app):
            await self.serve(sockets=sockets)

    def _give_up(self) -> None:
        self.is_broken = True
        self.stop()


def serve_app(config: ServerConfig, make_app: Callable[[ServerConfig], FastAPI]) -> None:
    """Run until SIGTERM or SIGINT.

    Raises:
        SystemExit: 2 when it can not start (one sentence on standard error), 1 when the loop gave up.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    for name in ("httpx", "alembic"):
        logging.getLogger(name).setLevel(logging.WARNING)
    try:
        is_broken = _serve(config, make_app)
    except CannotServe as error:
        print(f"nightlab: {' '.join(str(error).split())}", file=sys.stderr)
        raise SystemExit(2) from error
    if is_broken:
        raise SystemExit(1)


def _serve(config: ServerConfig, make_app: Callable[[ServerConfig], FastAPI]) -> bool:
    """Whether the loop gave up."""

    def on_listening() -> None:
        write_address(config.address_path, url=url_of(config), started_at=time.time(), mlflow_url=config.mlflow_url)

    with ExitStack() as stack:
        try:
            lock = lock_home(config.lock_path)
            stack.callback(lock.release)
            listener = listen_at(config)
            stack.callback(listener.close)
            stack.callback(remove_address, config.address_path)
            server = HttpServer(make_app(config), on_listening=on_listening)
            stack.enter_context(server.heard_early())
            asyncio.run(server.run_app([listener]))
        except HomeOccupied as error:
            raise CannotServe(str(error)) from error
        except IN_THE_WAY as error:
            raise CannotServe(f"the runtime can not start: {error}") from error
        return server.is_broken


def url_of(config: ServerConfig) -> str:
    """Where clients on this machine reach it."""
    host = "127.0.0.1" if config.host in ("", "0.0.0.0", "::") else config.host
    return f"http://[{host}]:{config.port}" if ":" in host else f"http://{host}:{config.port}"


def listen_at(config: ServerConfig) -> socket.socket:
    """A socket bound to the configured address; it listens when the server is ready.

    Raises:
        CannotServe: the port is taken, or the address is not one to listen at.
    """
    if not is_loopback(config.host) and not config.allowed_hosts:
        raise CannotServe(
            f"host {config.host!r} is reachable from other machines; name the hosts that clients may use in "
            "allowed_hosts, or listen on 127.0.0.1"
        )
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    # The protocol is named because asyncio sets TCP_NODELAY only then; without it each answer costs 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((config.host, config.port))
    except OSError as error:
        listener.close()
        raise CannotServe(
            f"port {config.port} on {config.host} can not be used ({error.strerror}); "
            f"end the program that has it, or choose another one: nightlab up --port {config.port + 1}"
        ) from error
    listener.setblocking(False)
    return listener
