"""A real server in a process of its own, in a folder that goes away afterwards."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from runtime_client.client import RuntimeClient
from runtime_client.errors import RuntimeClientError


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


class Server:
    """Started and killed as often as wanted, at one port."""

    def __init__(self, home: Path, devices: str) -> None:
        self.home = home
        options = {"--home": str(home), "--port": str(free_port()), "--devices": devices}
        self._command = [sys.executable, "-m", "runtime.server", *(word for pair in options.items() for word in pair)]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        if self._process is None:
            raise RuntimeError("it was not started")
        return self._process.pid

    def start(self) -> RuntimeClient:
        """A client, as soon as the server answers."""
        with (self.home / "server.log").open("ab") as log:
            process = self._process = subprocess.Popen(self._command, stdout=log, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            if process.poll() is not None:
                break
            try:
                client = RuntimeClient.from_home(self.home)
                client.info()
                return client
            except RuntimeClientError:
                time.sleep(0.01)
        raise RuntimeError("the server did not answer within 30 s: " + (self.home / "server.log").read_text())

    def kill(self) -> None:
        """With SIGKILL; attempts go on."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def end(self) -> None:
        """In order, and then everything that is left of this home."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(15)
            self.kill()
        for pid in _belonging_to(self.home):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)


@contextlib.contextmanager
def homed_server(devices: str) -> Iterator[Server]:
    """A server, not yet started, with these devices and no MLflow."""
    with tempfile.TemporaryDirectory(prefix="nl-bench-", ignore_cleanup_errors=True) as folder:
        server = Server(Path(folder), devices)
        try:
            yield server
        finally:
            server.end()


@contextlib.contextmanager
def running_server(devices: str) -> Iterator[tuple[RuntimeClient, Path]]:
    """A client of a warm server with these devices and no MLflow, and its home folder."""
    with homed_server(devices) as server:
        yield server.start(), server.home


def _belonging_to(home: Path) -> list[int]:
    """Launcher, supervisors, and processes of attempts, which outlive the server."""
    found = []
    for proc in Path("/proc").iterdir():
        if proc.name.isdigit() and int(proc.name) != os.getpid():
            with contextlib.suppress(OSError):
                if str(home).encode() in (proc / "cmdline").read_bytes() + (proc / "environ").read_bytes():
                    found.append(int(proc.name))
    return found
