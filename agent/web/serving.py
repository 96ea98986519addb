"""The API on a thread of the agent service: loopback alone, its address in a file. Work goes on without it.

It takes the port that it had before, else `PORT`, else any free one: clients read the address from the file.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import uvicorn

from agent.store.store import AgentStore
from agent.web.address import port_before, write_address
from agent.web.app import create_app
from agent.web.keys import open_keys
from agent.web.trial_reading import Connect

PORT = 7072
GOODBYE_S = 3
log = logging.getLogger(__name__)


class ApiServer:
    def __init__(self, home: Path, *, connect: Connect | None = None) -> None:
        """`connect`: how the runtime is reached; None: as the home's files say."""
        self._home = home
        self._store = AgentStore.open(home)
        self._listener = _listen(port_before(home))
        self._app = create_app(self._store, open_keys(home), home, connect=connect)
        config = uvicorn.Config(
            self._app,
            lifespan="off",
            access_log=False,
            log_config=None,
            server_header=False,
            timeout_graceful_shutdown=GOODBYE_S,
        )
        self._server = uvicorn.Server(config)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._work, name="agent-api", daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def start(self) -> None:
        write_address(self._home, self.url)
        self._app.state.talk.start()
        self._thread.start()

    def stop(self) -> None:
        """End the streams, let open requests end, and close the store."""
        self._server.should_exit = True
        if self._loop is not None:
            with suppress(RuntimeError):  # it has ended already
                self._loop.call_soon_threadsafe(self._app.state.pulse.close)
        self._app.state.talk.close()
        self._thread.join(timeout=GOODBYE_S + 2)
        self._listener.close()
        self._store.close()

    def _work(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        await self._server.serve(sockets=[self._listener])


@contextmanager
def served(home: Path) -> Iterator[str | None]:
    """Serve within the block; gives the address, or None where it can not be served, which the log tells."""
    try:
        server = ApiServer(home)
        server.start()
    except OSError as error:
        log.warning("no API of the agent service: %s", error)
        yield None
        return
    try:
        yield server.url
    finally:
        server.stop()


def _listen(before: int | None) -> socket.socket:
    """
    Raises:
        OSError: not even a free port can be had.
    """
    for port in (before, PORT):
        if port is not None:
            with suppress(OSError):
                return _bound(port)
    return _bound(0)


def _bound(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen(128)
    except OSError:
        listener.close()
        raise
    listener.setblocking(False)
    return listener
