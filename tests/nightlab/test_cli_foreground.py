"""`up --foreground` in a process that people and process managers stop."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from cli_process import eventually

from nightlab.services.control import is_up

pytestmark = pytest.mark.kills

UP = ("up", "--foreground", "--devices", "cpu:1", "--no-mlflow", "--port", "0")

QUICK = """
import os, signal, sys

class Quick:
    def __getattr__(self, name):
        return getattr(sys.__stderr__, name)

    def write(self, text):
        written = sys.__stderr__.write(text)
        if text.startswith(tuple(sys.argv[1].split("|"))):
            os.kill(os.getpid(), signal.SIGTERM)
        return written

sys.stderr = Quick()
from nightlab.__main__ import main
main(sys.argv[2:])
"""
"""The command line, with a person who answers sentences that begin so before it is written to its end."""


@pytest.fixture
def foreground(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "nightlab", *UP],
        env={**os.environ, "NIGHTLAB_HOME": str(tmp_path)},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    assert "Ctrl-C" in process.stderr.readline()
    yield process
    process.kill()
    process.wait()


def is_quiet(home: Path) -> bool:
    return not is_up(home) and not [
        p for p in psutil.process_iter(["cmdline"]) if str(home) in (p.info["cmdline"] or [])
    ]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_signal_stops_in_order(foreground: subprocess.Popen[str], tmp_path: Path, number: signal.Signals) -> None:
    foreground.send_signal(number)
    assert foreground.wait(timeout=30) == 0
    assert is_quiet(tmp_path)


@pytest.mark.parametrize(("sentences", "code"), [("Ctrl-C stops", 0), ("Ctrl-C stops|Stopping in order", 130)])
def test_a_signal_counts_from_the_moment_it_is_spoken_of(tmp_path: Path, sentences: str, code: int) -> None:
    quick = subprocess.run(
        [sys.executable, "-c", QUICK, sentences, *UP],
        env={**os.environ, "NIGHTLAB_HOME": str(tmp_path)},
        timeout=120,
        check=False,
    )
    assert quick.returncode == code
    assert is_quiet(tmp_path)


def test_nothing_outlives_a_killed_foreground(foreground: subprocess.Popen[str], tmp_path: Path) -> None:
    foreground.kill()
    eventually(lambda: is_quiet(tmp_path), within_s=30)
