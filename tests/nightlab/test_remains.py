"""What a stop at once leaves: nothing, not even what hides."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cli_process import eventually

from nightlab.services.remains import end_remains, processes_of

# A parent of ours, whose child has a session of its own and neither our environment nor our words in its command.
HIDING = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], env={}, start_new_session=True)
print(child.pid, flush=True)
time.sleep(600)
"""


@pytest.fixture
def parent(tmp_path: Path):
    mark = {"NIGHTLAB_CHECKPOINT_DIR": str(tmp_path / "attempts" / "j1" / "checkpoints")}
    process = subprocess.Popen(
        [sys.executable, "-c", HIDING], env={**os.environ, **mark}, stdout=subprocess.PIPE, text=True
    )
    yield process
    process.kill()
    process.communicate()


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def test_children_without_a_mark_end_with_their_parent(parent: subprocess.Popen[str], tmp_path: Path) -> None:
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    assert sorted(p.pid for p in processes_of(tmp_path)) == sorted([parent.pid, child])
    assert end_remains(tmp_path, grace_s=0.0) == 2
    eventually(lambda: not is_alive(child), within_s=5.0)
    assert not is_alive(parent.pid)


def test_what_is_stopped_ends_too(parent: subprocess.Popen[str], tmp_path: Path) -> None:
    assert parent.stdout is not None
    parent.stdout.readline()
    parent.send_signal(signal.SIGSTOP)
    end_remains(tmp_path, grace_s=0.0)
    assert processes_of(tmp_path) == []
