"""Training scripts of the tests, run as processes of their own with the environment of an attempt."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

PLAIN = {name: value for name, value in os.environ.items() if not name.startswith(("NIGHTLAB_", "MLFLOW_"))}


def eventually(ask: Callable[[], object], *, within_s: float = 60.0, what: str = "it") -> None:
    """
    Raises:
        AssertionError: it was not so in time.
    """
    deadline = time.monotonic() + within_s
    while not ask():
        assert time.monotonic() < deadline, f"{what} did not happen within {within_s:g} s"
        time.sleep(0.01)


class Attempt:
    """One execution of a script as a job, without a server: folders and environment as an attempt has them."""

    def __init__(self, folder: Path, *, number: int = 1, ranks: int = 1) -> None:
        self.folder = folder / str(number)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.checkpoint_dir = folder / "checkpoints"
        self.notice = self.folder / "preempt-notice"
        self._number, self._n_ranks = number, ranks
        self._processes: list[subprocess.Popen[str]] = []

    def start(self, script: str | Path, *args: str, **more: str) -> None:
        command = [sys.executable, str(script), *args] if isinstance(script, Path) else [sys.executable, "-c", script]
        for rank in range(self._n_ranks):
            of_rank = {"RANK": str(rank), "WORLD_SIZE": str(self._n_ranks)} if self._n_ranks > 1 else {}
            process = subprocess.Popen(
                command,
                env=PLAIN | {"OMP_NUM_THREADS": "1"} | self.environment() | of_rank | more,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
            self._processes.append(process)

    def environment(self) -> dict[str, str]:
        found = {
            "NIGHTLAB_JOB_ID": "j1",
            "NIGHTLAB_ATTEMPT": str(self._number),
            "NIGHTLAB_CHECKPOINT_DIR": str(self.checkpoint_dir),
            "NIGHTLAB_PREEMPT_FILE": str(self.notice),
        }
        complete = [path.parent for path in self.checkpoint_dir.glob("step-*/COMPLETE")]
        if complete:
            found["NIGHTLAB_RESUME_FROM"] = str(max(complete, key=lambda path: int(path.name[5:])))
        return found

    def pids(self) -> list[int]:
        return [process.pid for process in self._processes]

    def ask_to_leave(self) -> None:
        """The notice, then the signal, to the whole group of each rank."""
        self.notice.touch()
        for process in self._processes:
            os.killpg(process.pid, signal.SIGTERM)

    def wait(self, timeout_s: float = 120.0) -> Sequence[int]:
        return [code for code, _, _ in self.results(timeout_s)]

    def results(self, timeout_s: float = 120.0) -> list[tuple[int, str, str]]:
        """Exit code, output, error output of each rank."""
        found = []
        for process in self._processes:
            try:
                output, errors = process.communicate(timeout=timeout_s)
            except subprocess.TimeoutExpired:
                for each in self._processes:
                    each.kill()
                raise
            found.append((process.returncode, output, errors))
        return found
