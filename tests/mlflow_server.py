"""A real MLflow tracking server for acceptance tests: about half a minute to start, so one is shared by a session."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

START_TIMEOUT_S = 180.0
ENVIRONMENT = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}


class MlflowServer:
    """`mlflow server` on loopback, over SQLite and a folder for artifacts; always at the same address."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port: int = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Start it and wait until it answers."""
        self._folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(self._port)]
        command += ["--workers", "1", "--backend-store-uri", f"sqlite:///{self._folder / 'mlflow.db'}"]
        command += ["--artifacts-destination", str(self._folder / "artifacts")]
        log = (self._folder / "server.log").open("ab")
        with log:
            self._process = subprocess.Popen(
                command,
                env={**os.environ, **ENVIRONMENT},
                cwd=self._folder,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self.is_up():
            assert self._process.poll() is None, self.log()
            assert time.monotonic() < deadline, f"no answer after {START_TIMEOUT_S:.0f} s: {self.log()}"
            time.sleep(0.5)

    def is_up(self) -> bool:
        try:
            return httpx.get(f"{self.url}/health", timeout=2.0, trust_env=False).status_code == 200
        except httpx.HTTPError:
            return False

    def stop(self) -> None:
        """End it in order."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kill it and its workers without a warning."""
        self._end(signal.SIGKILL)

    def log(self) -> str:
        return (self._folder / "server.log").read_text(errors="replace")[-3000:]

    def _end(self, signal_number: int) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        for number in (signal_number, signal.SIGKILL):
            try:
                os.killpg(process.pid, number)
            except ProcessLookupError:
                break
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                continue
        process.wait()


@pytest.fixture(scope="session")
def mlflow_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MlflowServer]:
    """The shared server, up. A test that stops or kills it starts it again before it ends."""
    server = MlflowServer(tmp_path_factory.mktemp("mlflow"))
    server.start()
    yield server
    server.stop()
