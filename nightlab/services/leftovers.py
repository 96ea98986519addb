"""Processes of services whose supervisor was killed: none may hold a port or a database when new ones start."""

from __future__ import annotations

import signal

import psutil

from .processes import is_same_process, marked_processes
from .programs import AGENT, MLFLOW
from .settings import ServiceFiles
from .state import read_state

GRACE_S = 10.0


def end_leftovers(files: ServiceFiles, *, grace_s: float = GRACE_S) -> int:
    """End what an earlier supervisor left, SIGTERM first; how many there were. Call it with no supervisor alive."""
    found = {process.pid: process for process in marked_processes((AGENT, MLFLOW), files.home)}
    state = read_state(files)
    for service in () if state is None else state.services.values():
        if service.pid is not None and is_same_process(service.pid, service.process_started_at):
            found[service.pid] = psutil.Process(service.pid)
    left = list(found.values())
    for number in (signal.SIGTERM, signal.SIGKILL):
        for process in left:
            _send(process, number)
        _, left = psutil.wait_procs(left, timeout=grace_s)
    return len(found)


def _send(process: psutil.Process, number: signal.Signals) -> None:
    try:
        process.send_signal(number)
    except psutil.NoSuchProcess:
        return
