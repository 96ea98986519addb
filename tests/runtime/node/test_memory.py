"""The most memory that processes held at once: what is shared counts once, and looking costs next to nothing."""

from __future__ import annotations

import mmap
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from runtime.node import memory, processes

MIB = 1024 * 1024


@contextmanager
def child(hold: str) -> Iterator[int]:
    """A process that holds something until the block ends."""
    code = f"import os, signal\n{hold}\nprint('ready', flush=True)\nsignal.pause()"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as found:
        assert found.stdout is not None
        assert found.stdout.readline() == b"ready\n"
        yield found.pid
        for pid in processes.below(found.pid) | {found.pid}:
            os.kill(pid, signal.SIGKILL)


def test_several_processes_are_added_up_and_a_single_one_is_left_to_the_kernel() -> None:
    with child("held = bytearray(64 << 20)") as one, child("held = bytearray(64 << 20)") as other:
        alone = memory.Peak(0.0)
        alone.look(lambda: {one})
        assert alone.mb is None
        both = memory.Peak(0.0)
        both.look(lambda: {one, other})
        assert both.mb is not None
        assert 128 < both.mb < 190


def test_what_forked_processes_share_counts_once() -> None:
    forks = "held = bytearray(96 << 20)\nfor _ in range(4):\n  if os.fork() == 0:\n    signal.pause()"
    with child(forks) as parent:
        peak = memory.Peak(0.0)
        peak.look(lambda: processes.below(parent) | {parent})
        assert peak.mb is not None
        assert 96 < peak.mb < 160


def test_the_peak_stays_when_the_memory_is_given_back() -> None:
    peak = memory.Peak(0.0)
    peak.ended(3 * 1024)
    peak.ended(1024)
    assert peak.mb == 3.0
    peak.look(lambda: {2**30, 2**30 + 1})
    assert peak.mb == 3.0


def test_nothing_known_is_none_and_who_is_gone_holds_nothing() -> None:
    assert memory.Peak(0.0).mb is None
    assert memory.held_kb(2**30) == 0


def test_an_expensive_look_puts_the_next_one_off() -> None:
    peak = memory.Peak(100.0)
    assert peak.look_at == 101.0

    def slow() -> set[int]:
        until = time.monotonic() + 0.05
        while time.monotonic() < until:
            mmap.mmap(-1, MIB).close()
        return set()

    peak.look(slow)
    assert 0.05 * memory.COST <= peak.look_at - time.monotonic() + 1.0 < 60.0


@pytest.mark.parametrize("is_listed", [True, False], ids=["by the kernel's list", "by the process table"])
def test_all_below_a_process_are_found(is_listed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_list(pid: int) -> list[int]:
        raise FileNotFoundError

    nested = "if os.fork() == 0:\n  os.fork()\n  signal.pause()"
    with child(nested) as parent:
        deadline = time.monotonic() + 10.0
        while len(processes.below(parent)) < 2 and time.monotonic() < deadline:
            os.sched_yield()
        if not is_listed:
            monkeypatch.setattr(processes, "_children", no_list)
        assert len(processes.below(parent)) == 2
