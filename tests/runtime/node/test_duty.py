"""Whose end counts after a notice: real processes below a process that inherits orphans, as a supervisor does."""

from __future__ import annotations

import subprocess
import sys

import pytest

# A parent that holds much memory takes long to die, so its child has time to see who its parent is, or to end first.
CHILD = """
import os, signal, sys
def leave(*_):
    print(os.getppid(), flush=True)
    os._exit(75)
signal.signal(signal.SIGTERM, leave)
print("ready", flush=True)
signal.pause()
"""
PARENT = """
import subprocess, sys
held = bytearray(300_000_000)
for at in range(0, len(held), 4096):
    held[at] = 1
subprocess.run([sys.executable, "-c", sys.argv[1]])
"""
TOP = """
import ctypes, os, subprocess, sys
from runtime.node.duty import Duty
ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER
out, into = os.pipe()
leader = subprocess.Popen(sys.argv[1:], stdout=into, start_new_session=True)
os.close(into)
with open(out) as said:
    said.readline()
    duty = Duty()
    duty.begin(leader.pid)
    duty.notice()
    duty.ask_to_leave()
    while duty.awaited:
        pid, status = os.wait()
        duty.ended(pid, os.waitstatus_to_exitcode(status))
    print(duty.exit_code(), said.read().strip() == str(os.getpid()))
"""


@pytest.mark.parametrize("n_between", [1, 2])
def test_who_dies_of_the_notice_is_gone_before_its_child_is_asked_to_leave(n_between: int) -> None:
    """A parent that is still there could collect its child's exit code and die with it."""
    command = [sys.executable, "-c", PARENT, CHILD]
    if n_between == 2:
        command = ["/bin/sh", "-c", '"$@"; true', "sh", *command]
    answer = subprocess.run([sys.executable, "-c", TOP, *command], capture_output=True, text=True, timeout=60)
    assert answer.stdout == "75 True\n", answer.stderr


def test_a_leader_that_catches_the_notice_is_asked_with_its_children() -> None:
    """It is not ended first: it may want to wait for them."""
    command = ["/bin/sh", "-c", 'trap "code=1" TERM; "$@"; exit $?', "sh", sys.executable, "-c", CHILD]
    answer = subprocess.run([sys.executable, "-c", TOP, *command], capture_output=True, text=True, timeout=60)
    assert answer.stdout == "75 False\n", answer.stderr


def test_whoever_has_no_children_is_asked_once() -> None:
    answer = subprocess.run(
        [sys.executable, "-c", TOP, sys.executable, "-c", CHILD], capture_output=True, text=True, timeout=60
    )
    assert answer.stdout == "75 True\n", answer.stderr
