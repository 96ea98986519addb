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


@contextlib.contextmanager
def running_server(devices: str) -> Iterator[tuple[RuntimeClient, Path]]:
    """A client of a warm server with these devices and no MLflow, and its home folder."""
    with tempfile.TemporaryDirectory(prefix="nl-bench-") as folder:
        home = Path(folder)
        port = free_port()
        command = [
            sys.executable,
            "-m",
            "runtime.server",
            "--home",
            str(home),
            "--port",
            str(port),
            "--devices",
            devices,
        ]
        with (home / "server.log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            yield _client(home, process), home
        finally:
            process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(15)
            process.kill()
            _end_launcher(home)


def _client(home: Path, process: subprocess.Popen[bytes]) -> RuntimeClient:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError((home / "server.log").read_text())
        try:
            client = RuntimeClient.from_home(home)
            client.info()
            return client
        except RuntimeClientError:
            time.sleep(0.05)
    raise RuntimeError("the server did not answer within 30 s: " + (home / "server.log").read_text())


def _end_launcher(home: Path) -> None:
    for proc in Path("/proc").iterdir():
        if not proc.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            if str(home).encode() in (proc / "cmdline").read_bytes():
                os.kill(int(proc.name), signal.SIGTERM)
