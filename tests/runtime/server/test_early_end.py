"""A server that is told to end while it starts: it ends in order, and takes along what it has started by then."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import until
from server_process import end_leftovers

from runtime.node.launcher import VERSION

pytestmark = pytest.mark.kills


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    end_leftovers(tmp_path)


def launchers(home: Path) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        try:
            command = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
        except OSError:
            continue
        if str(home).encode() in command and b"runtime.node.launcher" in command:
            found.append(int(entry.name))
    return found


@pytest.mark.parametrize("point", ["runtime.db", "run/launcher.log", f"run/launcher{VERSION}.sock"])
@pytest.mark.parametrize("order", [signal.SIGTERM, signal.SIGINT])
def test_a_server_that_is_told_to_end_while_it_starts_leaves_no_launcher(
    order: signal.Signals, point: str, home: Path
) -> None:
    command = [sys.executable, "-m", "runtime.server", "--home", str(home), "--port", "0", "--devices", "cpu:1"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        until(lambda: (home / point).exists() or server.poll() is not None, timeout_s=60)
        server.send_signal(order)
        said, _ = server.communicate(timeout=60)
    finally:
        server.kill()
        server.wait()
    assert "Traceback" not in said
    assert server.returncode == 0, said
    until(lambda: launchers(home) == [], timeout_s=10)
