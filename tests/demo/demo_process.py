"""`nightlab demo` as a person runs it: a process of its own, with its lines and its folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from nightlab.services.remains import processes_of

DEADLINE_S = 400.0


class DemoProcess:
    """A demo without a terminal; its lines go to a file."""

    def __init__(self, home: Path, *options: str) -> None:
        self.home = home
        self._log = home.parent / f"{home.name}.log"
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("NIGHTLAB_", "MLFLOW_"))}
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "nightlab", "demo", "--short", "--home", str(home), *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=kept,
                start_new_session=True,
            )

    @property
    def output(self) -> str:
        return self._log.read_text(errors="replace")

    def wait_for(self, words: str) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while words not in self.output:
            assert self._process.poll() is None, f"ended too early:\n{self.output}"
            assert time.monotonic() < deadline, f"{words!r} did not come:\n{self.output}"
            time.sleep(0.1)

    def interrupt(self) -> None:
        self._process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def wait_until(self, is_so: Callable[[], bool], timeout_s: float = 60.0) -> None:
        deadline = time.monotonic() + timeout_s
        while not is_so():
            assert time.monotonic() < deadline, self.output
            time.sleep(0.1)

    def wait(self, timeout_s: float = DEADLINE_S) -> int:
        return self._process.wait(timeout=timeout_s)

    def end(self) -> None:
        """Whatever a failed test left."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        for process in processes_of(self.home):
            process.kill()
