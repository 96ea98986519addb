"""Processes that belong to a home folder: training, its supervisors, services. To end all, and to prove it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from .control import Services
from .processes import MARK

MODULES = ("nightlab.services.supervisor", "runtime.node.launcher")


def processes_of(home: Path) -> list[psutil.Process]:
    """This user's processes that were started for `home`, and all below them; not this one and its parents."""
    kin = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    living = [process for process in psutil.process_iter(["ppid", "status"]) if process.pid not in kin]
    living = [process for process in living if process.info["status"] != psutil.STATUS_ZOMBIE]
    ours = {process.pid for process in living if _is_of(process, home)}
    while below := {p.pid for p in living if p.info["ppid"] in ours} - ours:
        ours |= below
    return [process for process in living if process.pid in ours]


def _is_of(process: psutil.Process, home: Path) -> bool:
    try:
        if process.uids().real != os.getuid():
            return False
        environment, command = process.environ(), process.cmdline()
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False
    if environment.get("NIGHTLAB_CHECKPOINT_DIR", "").startswith(f"{home}{os.sep}"):
        return True
    if environment.get(MARK, "").endswith(f"@{home}"):
        return True
    is_ours = any(module in part for part in command for module in MODULES)
    return is_ours and any(part == str(home) or part.startswith(f"{home}{os.sep}") for part in command)


def end_everything(services: Services, *, grace_s: float) -> None:
    """Services and training, at once; what was journalled can be resumed. Ctrl-C does not cut this short.

    Args:
        grace_s: for what is about to end by itself.
    """
    with _uninterrupted():
        services.stop_at_once()
        end_remains(services.settings.home, grace_s=grace_s)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """For a few seconds of work that must not be cut short."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def end_remains(home: Path, *, grace_s: float) -> int:
    """Wait for what is about to end by itself, then kill the rest; how many had to be killed.

    They are stopped before they are killed: a tree that stands still can neither grow, nor record the death of one
    of its processes as a failure of the job.
    """
    psutil.wait_procs(processes_of(home), timeout=grace_s)
    n_killed = 0
    while frozen := _frozen(home):
        n_killed += len(frozen)
        for process in frozen:
            _send(process, signal.SIGKILL)
        psutil.wait_procs(frozen, timeout=5.0)
    return n_killed


def _frozen(home: Path) -> list[psutil.Process]:
    """Everything that is left, standing still."""
    found: list[psutil.Process] = []
    while new := [process for process in processes_of(home) if process not in found]:
        for process in new:
            _send(process, signal.SIGSTOP)
        found += new
    return found


def _send(process: psutil.Process, number: signal.Signals) -> None:
    try:
        process.send_signal(number)
    except psutil.NoSuchProcess:
        return
