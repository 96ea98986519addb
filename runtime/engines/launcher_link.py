"""The engine's end of the launcher: start it when none answers, ask it to launch."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import runtime
from runtime.node.launcher import VERSION

ANSWER_S = 5.0
START_S = 20.0
DYING_S = 1.0
"""By then a launcher that was killed has closed its socket."""
_BOOT = "import sys; sys.path.append(sys.argv[1]); from runtime.node.launcher import main; main(*sys.argv[2:])"


class LauncherUnavailable(Exception):
    """No launcher could be reached or started. Whether it has carried out the last request is not known."""


def plain_launcher(*, sockets: Path, log: Path, environ: Mapping[str, str]) -> LauncherLink:
    """The launcher of this home folder, run by the server's own Python."""
    # The version is in the name: a launcher of an older release keeps its attempts, and a new one is started.
    path = str(sockets / f"launcher{VERSION}.sock")
    return LauncherLink(
        path=path,
        log=str(log),
        command=[sys.executable, "-I", "-S", "-c", _BOOT, root_folder(), path, str(log)],
        environ={name: environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in environ},
    )


def root_folder() -> str:
    """Where `runtime` is imported from."""
    return str(Path(runtime.__path__[0]).parent)


class LauncherLink:
    """One connection, opened when needed; requests go one after another."""

    def __init__(
        self, *, path: str, log: str, command: Sequence[str], environ: Mapping[str, str], start_s: float = START_S
    ) -> None:
        """`command` starts a launcher that listens at `path`, and ends with 0 when it does."""
        self._path = path
        self._log = log
        self._command = command
        self._environ = environ
        self._start_s = start_s
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._turn = asyncio.Lock()

    async def open(self) -> None:
        """Have a launcher ready. Raises LauncherUnavailable."""
        await self._ask({"op": "hello"})

    async def find(self) -> bool:
        """Whether one is there already; connects to it."""
        with contextlib.suppress(OSError):
            self._streams = self._streams or await asyncio.open_unix_connection(self._path)
        return self._streams is not None

    async def launch(self, folder: Path) -> int:
        """Launch the attempt in this folder, unless it was launched already. Raises LauncherUnavailable.

        Returns how many it has launched in its life.
        """
        answer = await self._ask({"op": "launch", "folder": str(folder)})
        n_launches = answer["n_launches"]
        assert isinstance(n_launches, int)
        return n_launches

    def leave(self) -> None:
        """Take its place from the launcher: it ends, its attempts go on, and another one can start at once."""
        self._disconnect()
        for path in (self._path, self._path + ".lock"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)

    async def close(self) -> None:
        """Let go of the launcher. It ends when its attempts have."""
        if self._streams is not None:
            with contextlib.suppress(LauncherUnavailable):
                await self._ask({"op": "retire"})
        self._disconnect()

    async def _ask(self, request: dict[str, str]) -> dict[str, object]:
        async with self._turn:
            answer = await self._answer(request)
            if not answer.get("ok"):
                raise LauncherUnavailable(f"the launcher could not: {answer.get('error')}")
            return answer

    async def _answer(self, request: dict[str, str]) -> dict[str, object]:
        """Ask, and ask again what died meanwhile: requests can be repeated.

        Twice at least. One that is just dying still takes connections for a moment, so more often at once.
        """
        clock = asyncio.get_running_loop().time
        until, is_first = clock() + DYING_S, True
        while True:
            try:
                return await self._exchange(request)
            except (OSError, EOFError, TimeoutError) as error:
                self._disconnect()
                if not is_first and clock() > until:
                    raise LauncherUnavailable(f"the launcher does not answer ({error!r}); see {self._log}") from error
            is_first = False
            await asyncio.sleep(0.01)

    async def _exchange(self, request: dict[str, str]) -> dict[str, object]:
        reader, writer = self._streams = self._streams or await self._connect()
        writer.write(json.dumps(request).encode() + b"\n")
        await writer.drain()
        line = await asyncio.wait_for(reader.readline(), ANSWER_S)
        if not line:
            raise EOFError("connection closed")
        answer: dict[str, object] = json.loads(line)
        return answer

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        try:
            async with asyncio.timeout(self._start_s):
                while True:
                    try:
                        return await asyncio.open_unix_connection(self._path)
                    except (FileNotFoundError, ConnectionRefusedError):
                        await self._start()
        except TimeoutError as error:
            raise LauncherUnavailable(f"the launcher was not ready after {self._start_s:g} s") from error

    async def _start(self) -> None:
        """Start one. It has its own session and is nobody's child once it listens."""
        process = subprocess.Popen(
            self._command,
            env=self._environ,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            _, complaint = await asyncio.to_thread(process.communicate)
        finally:
            if process.poll() is None:  # Nobody waits for it any more.
                os.killpg(process.pid, signal.SIGKILL)
        if process.returncode != 0:
            raise LauncherUnavailable(
                f"the launcher could not start: {complaint.decode(errors='replace').strip()[-300:]}"
            )
        if not os.path.exists(self._path):
            await asyncio.sleep(0.02)  # One that is just ending holds the lock.

    def _disconnect(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None
