"""What the supervisor tells about itself: a small JSON file that the command line reads."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from .settings import ServiceFiles, write_private


class Phase(StrEnum):
    """Where the supervisor is."""

    RUNNING = "running"
    STOPPING_AGENT = "stopping_agent"
    STOPPING_JOBS = "stopping_jobs"
    """The server was asked to stop the jobs in order, and we wait for it."""
    STOPPING_SERVICES = "stopping_services"
    STOPPED = "stopped"


class ServicePhase(StrEnum):
    RUNNING = "running"
    """Its process is there; whether it answers is for its client to see."""
    WAITING = "waiting"
    """It died and is started again after a pause."""
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceState:
    phase: ServicePhase
    pid: int | None
    process_started_at: float | None
    """By the kernel's clock: with the pid it names one process for ever."""
    n_restarts: int
    last_exit: int | None
    """Exit code of the process before this one; negative: that signal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SupervisorState:
    pid: int
    started_at: float
    phase: Phase
    services: dict[str, ServiceState]
    has_left_jobs: bool = False
    """It stopped without the runtime's help, so training may still run; the next start takes it over."""

    def write(self, files: ServiceFiles) -> None:
        write_private(files.state, json.dumps(asdict(self), indent=1))


def read_state(files: ServiceFiles) -> SupervisorState | None:
    """None: there is none, or it is of another version."""
    try:
        found = json.loads(files.state.read_text())
        services = {
            name: ServiceState(**{**one, "phase": ServicePhase(one["phase"])})
            for name, one in found["services"].items()
        }
        return SupervisorState(
            pid=int(found["pid"]),
            started_at=float(found["started_at"]),
            phase=Phase(found["phase"]),
            services=services,
            has_left_jobs=bool(found["has_left_jobs"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def is_locked(path: Path) -> bool:
    """Whether a living process holds the lock."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock; waits for whoever has it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
