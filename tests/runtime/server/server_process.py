"""A real server process for a home, to be started, stopped and killed as often as a test likes."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from lab import until

from runtime_client.client import RuntimeClient
from runtime_client.errors import RuntimeClientError


class Process:
    """A server process for one home, started as often as needed at one port."""

    def __init__(self, home: Path, *, devices: str = "cpu:2", environ: Mapping[str, str] | None = None) -> None:
        self.home = home
        self.devices = devices
        self.environ = {**os.environ, **(environ or {})}
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.popen: subprocess.Popen[bytes] | None = None

    def start(self) -> RuntimeClient:
        command = [sys.executable, "-m", "runtime.server", "--home", str(self.home), "--port", str(self.port)]
        with (self.home / "server.log").open("ab") as log:
            command += ["--devices", self.devices]
            self.popen = subprocess.Popen(command, stdout=log, stderr=log, env=self.environ)

        def client() -> RuntimeClient | None:
            try:
                found = RuntimeClient.from_home(self.home)
                found.info()
            except RuntimeClientError:
                assert self.popen is not None
                assert self.popen.poll() is None, (self.home / "server.log").read_text()
                return None
            return found

        return until(client, timeout_s=60)

    def kill(self) -> None:
        assert self.popen is not None
        self.popen.kill()
        self.popen.wait()

    def stop(self) -> int:
        assert self.popen is not None
        self.popen.send_signal(signal.SIGTERM)
        return self.popen.wait(timeout=30)


def end_leftovers(home: Path) -> None:
    """The launcher and supervisors of this home, which outlive the server on purpose."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            belongs = str(home).encode() in (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if belongs:
            try:
                os.kill(int(entry.name), signal.SIGKILL)
            except ProcessLookupError:
                continue
