"""Ctrl-C while a session runs: once is a stop in order that can be resumed, twice is at once; no orphans either way."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from command import clean_environment
from fault_lab import (
    FaultLab,
    check_nothing_is_left,
    check_whole,
    curve_task,
    end_all,
    eventually,
)

from agent.store.store import AgentStore
from agent.store.views import SessionState

pytestmark = pytest.mark.kills


class Foreground:
    """`nightlab up --foreground` in a terminal's place, with a session that has begun to measure."""

    def __init__(self, folder: Path) -> None:
        self.home = (folder / "home").resolve()
        self._lines = folder / "lines"
        up = ("up", "--foreground", "--devices", "cpu:2", "--no-mlflow", "--port", "0")
        with self._lines.open("wb") as lines:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "nightlab", *up],
                env=clean_environment(self.home),
                stdin=subprocess.DEVNULL,
                stdout=lines,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.await_words("Ctrl-C")
        with closing(AgentStore.open(self.home)) as store:
            store.create_session(curve_task(folder.resolve() / "starts"))
            eventually(lambda: sum(t.is_ended for t in store.trials("s1")) >= 2, within_s=60)

    @property
    def output(self) -> str:
        return self._lines.read_text(errors="replace")

    def await_words(self, words: str) -> None:
        def said() -> bool:
            assert self.process.poll() is None, self.output
            return words in self.output

        eventually(said, within_s=60, what=repr(words))

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)


@pytest.fixture
def foreground(tmp_path: Path) -> Iterator[Foreground]:
    found = Foreground(tmp_path)
    yield found
    found.process.kill()
    found.process.wait()
    end_all(found.home)


def test_once_stops_in_order_and_the_next_up_goes_on(foreground: Foreground, tmp_path: Path) -> None:
    foreground.interrupt()
    assert foreground.process.wait(timeout=60) == 0
    assert "Stopping in order" in foreground.output
    assert "Traceback" not in foreground.output
    check_nothing_is_left(foreground.home, within_s=1.0)
    with FaultLab(tmp_path) as lab:
        assert lab.session().state is SessionState.RUNNING
        left = [a.exit_reason for job in lab.jobs() for a in job.attempts if a.outcome == "preempted"]
        assert set(left) <= {"preempted"}
        lab.await_end()
        check_whole(lab, with_retries=True)


def test_twice_ends_at_once_and_the_next_up_goes_on(foreground: Foreground, tmp_path: Path) -> None:
    foreground.interrupt()
    foreground.await_words("Stopping in order")
    began = time.monotonic()
    foreground.interrupt()
    foreground.process.wait(timeout=30)
    assert time.monotonic() - began < 10.0
    assert "Traceback" not in foreground.output
    check_nothing_is_left(foreground.home, within_s=1.0)
    with FaultLab(tmp_path) as lab:
        lab.await_end()
        check_whole(lab, with_retries=True)


@pytest.mark.parametrize("mode", [(), ("--foreground",)], ids=["background", "foreground"])
@pytest.mark.parametrize("point", ["services/settings.json", "services/state.json", "runtime.db", "server.json"])
def test_an_interrupted_start_leaves_nothing(point: str, mode: tuple[str, ...], tmp_path: Path) -> None:
    home = (tmp_path / "home").resolve()
    up = ("up", *mode, "--devices", "cpu:1", "--no-mlflow", "--port", "0")
    process = subprocess.Popen(
        [sys.executable, "-m", "nightlab", *up],
        env=clean_environment(home),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        eventually(lambda: (home / point).exists() or process.poll() is not None)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60)
        assert "Traceback" not in output
        if "nightlab is up" in output and not mode:
            return  # It was up before the signal came.
        assert process.returncode in (0, 130)
        check_nothing_is_left(home, within_s=2.0)
    finally:
        process.kill()
        end_all(home)
