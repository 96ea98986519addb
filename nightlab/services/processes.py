"""Starting and ending service processes: each in a session of its own, gone when the supervisor is gone."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from agent.log_files import rotate

MARK = "NIGHTLAB_SERVICE"
"""Environment variable by which a service process is found again: `name@home`."""

PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceCommand:
    """How one service is started."""

    name: str
    argv: tuple[str, ...]
    environment: Mapping[str, str]
    log: Path
    stop_grace_s: float
    """Between SIGTERM and SIGKILL."""
    owns_group: bool
    """Its children end with it. Not so the server's: the launcher and the training below it go on."""


def spawn(command: ServiceCommand, home: Path) -> subprocess.Popen[bytes]:
    """Start it as leader of its own session; the kernel sends it SIGTERM when our thread ends."""
    rotate(command.log)
    environment = {**os.environ, **command.environment, MARK: f"{command.name}@{home}"}
    with command.log.open("ab") as log:
        return subprocess.Popen(
            command.argv,
            cwd=home,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=_die_with_parent(os.getpid()),
        )


def ask_to_end(pid: int) -> None:
    """SIGTERM to the service itself, which passes it on as it sees fit; gone already: no matter."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)


def kill(command: ServiceCommand, pid: int) -> None:
    """SIGKILL, also to what is left of the group that it leads or led if that is its own."""
    with suppress(ProcessLookupError):
        if command.owns_group:
            os.killpg(pid, signal.SIGKILL)
        else:
            os.kill(pid, signal.SIGKILL)


def process_started_at(pid: int) -> float | None:
    """None: no such process."""
    try:
        return psutil.Process(pid).create_time()
    except psutil.NoSuchProcess:
        return None


def is_same_process(pid: int, started_at: float | None) -> bool:
    """Whether `pid` is still the process that was started then (kernels use numbers again)."""
    now = process_started_at(pid)
    return now is not None and started_at is not None and abs(now - started_at) < 1.0


def runs_module(pid: int, module: str) -> bool:
    """Whether `pid` is a process of `python -m module`."""
    try:
        return module in psutil.Process(pid).cmdline()
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False


def marked_processes(names: Collection[str], home: Path) -> list[psutil.Process]:
    """Processes of this user that carry the mark of such a service, wherever their parents went."""
    wanted = {f"{name}@{home}" for name in names}
    found = []
    for process in psutil.process_iter():
        try:
            if process.uids().real == os.getuid() and process.environ().get(MARK) in wanted:
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


class _DieWithParent:
    """Runs between fork and exec: ask the kernel for SIGTERM at the parent's death."""

    def __init__(self, parent: int) -> None:
        self._parent = parent
        self._libc = ctypes.CDLL(None, use_errno=True)

    def __call__(self) -> None:
        self._libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != self._parent:
            os._exit(1)


def _die_with_parent(parent: int) -> _DieWithParent | None:
    return _DieWithParent(parent) if sys.platform == "linux" else None
