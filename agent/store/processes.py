"""Whether the process that holds a session still lives: by pid and start time, since pids are used again."""

from __future__ import annotations

import psutil


def started_at(pid: int) -> float | None:
    """Start time of a process in seconds since the epoch; None when there is no such process."""
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return float(process.create_time())
    except psutil.NoSuchProcess:
        return None
    except psutil.AccessDenied:
        return 0.0


def is_alive(pid: int | None, started: float | None) -> bool:
    """Whether the process with that pid and start time still runs."""
    if pid is None or started is None:
        return False
    found = started_at(pid)
    return found is not None and abs(found - started) < 1.0
