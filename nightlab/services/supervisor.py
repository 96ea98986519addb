"""The process that keeps the services running: `python -m nightlab.services.supervisor HOME [--lifeline FD]`.

It starts them, starts again what dies (with a growing pause), and stops them in order when told to by SIGTERM; what
becomes of the jobs then is in the stop request file. A second SIGTERM, or SIGQUIT, stops everything at once. It
sleeps until the kernel wakes it, and knows nothing of jobs: those live under the runtime's launcher and go on.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from .farewell import ask_to_stop_jobs
from .health import answers
from .processes import ServiceCommand, ask_to_end, kill, process_started_at, spawn
from .programs import AGENT, MLFLOW, SERVER, service_commands
from .settings import JobsAtStop, ServiceFiles, ServiceSettings
from .state import Phase, ServicePhase, ServiceState, SupervisorState

PAUSE_FIRST_S = 0.2
PAUSE_MAX_S = 30.0
ALONE_S = 15.0
ALONE_POLL_S = 0.1
AT_ONCE_S = 3.0
"""For all services together, when they are to stop at once: the server takes its idle launcher along."""
SETTLED_S = 60.0
"""A process that lived this long is started again without a longer pause."""


@dataclass(slots=True, kw_only=True)
class Service:
    """One service and its present process."""

    command: ServiceCommand
    process: subprocess.Popen[bytes] | None = None
    spawned_at: float = 0.0
    process_started_at: float | None = None
    restart_at: float | None = None
    """By the monotonic clock; None: nothing is planned."""
    pause_s: float = PAUSE_FIRST_S
    n_restarts: int = 0
    last_exit: int | None = None
    is_asked_to_end: bool = False

    @property
    def state(self) -> ServiceState:
        if self.process is not None:
            phase = ServicePhase.RUNNING
        else:
            phase = ServicePhase.STOPPED if self.restart_at is None else ServicePhase.WAITING
        return ServiceState(
            phase=phase,
            pid=None if self.process is None else self.process.pid,
            process_started_at=self.process_started_at,
            n_restarts=self.n_restarts,
            last_exit=self.last_exit,
        )


class Supervisor:
    """`run` returns when everything is stopped."""

    def __init__(
        self, settings: ServiceSettings, commands: Sequence[ServiceCommand], *, lifeline: int | None, alone_s: float
    ) -> None:
        """
        Args:
            lifeline: a file descriptor whose end is a request to stop; None: there is none.
            alone_s: how long the server may keep the other services waiting at the start.
        """
        self._settings = settings
        self._files = ServiceFiles(settings.home)
        self._services = {command.name: Service(command=command) for command in commands}
        self._lifeline = lifeline
        self._alone_s = alone_s
        self._started_at = time.time()
        self._n_stops = 0
        self._at_once_by: float | None = None
        """By the monotonic clock; None: there is no such hurry."""
        self._has_left_jobs = False
        self._wakeup = _wakeup_pipe()

    def run(self) -> None:
        signal.signal(signal.SIGTERM, self._on_stop)
        signal.signal(signal.SIGQUIT, self._on_stop_at_once)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._start_all()
        while not self._n_stops:
            self._wait(self._until_restart_s())
            if self._mend():
                self._tell(Phase.RUNNING)
        self._stop_all()
        self._tell(Phase.STOPPED)

    def _start_all(self) -> None:
        """The server alone at first, so that it answers sooner; the others when it does, or does not."""
        self._start(self._services[SERVER])
        self._tell(Phase.RUNNING)
        deadline = time.monotonic() + self._alone_s
        while not self._n_stops and time.monotonic() < deadline and not answers(f"{self._settings.url}/v1/health"):
            self._wait(ALONE_POLL_S)
            if self._mend():
                self._tell(Phase.RUNNING)
        for service in self._services.values():
            if service.process is None and service.restart_at is None and not self._n_stops:
                self._start(service)
        self._tell(Phase.RUNNING)

    def _on_stop(self, *_: object) -> None:
        self._n_stops += 1

    def _on_stop_at_once(self, *_: object) -> None:
        self._n_stops = 2

    def _start(self, service: Service) -> None:
        service.process = spawn(service.command, self._settings.home)
        service.spawned_at = time.monotonic()
        service.process_started_at = process_started_at(service.process.pid)
        service.restart_at = None
        service.is_asked_to_end = False

    def _mend(self) -> bool:
        """Note what died, start what is due; whether anything changed."""
        now = time.monotonic()
        is_changed = False
        for service in self._services.values():
            if self._reaped(service):
                service.pause_s = PAUSE_FIRST_S if now - service.spawned_at > SETTLED_S else service.pause_s
                service.restart_at = now + service.pause_s
                service.pause_s = min(PAUSE_MAX_S, service.pause_s * 2)
                is_changed = True
            if service.restart_at is not None and service.restart_at <= now:
                service.n_restarts += 1
                self._start(service)
                is_changed = True
        return is_changed

    def _reaped(self, service: Service) -> bool:
        if service.process is None or service.process.poll() is None:
            return False
        if service.command.owns_group:
            kill(service.command, service.process.pid)
        service.last_exit = service.process.returncode
        service.process = None
        return True

    def _until_restart_s(self) -> float | None:
        due = [service.restart_at for service in self._services.values() if service.restart_at is not None]
        return max(0.0, min(due) - time.monotonic()) if due else None

    def _wait(self, timeout_s: float | None) -> None:
        """Sleep until a signal, the end of the process that we are tied to, or the time."""
        watched = [self._wakeup] if self._lifeline is None else [self._wakeup, self._lifeline]
        ready, _, _ = select.select(watched, [], [], timeout_s)
        if self._wakeup in ready:
            os.read(self._wakeup, 512)
        if self._lifeline in ready:
            self._lifeline = None
            self._n_stops += 1

    def _tell(self, phase: Phase) -> None:
        """Nobody's life hangs on it: with a full disk the old words stay."""
        state = SupervisorState(
            pid=os.getpid(),
            started_at=self._started_at,
            phase=phase,
            services={name: service.state for name, service in self._services.items()},
            has_left_jobs=self._has_left_jobs,
        )
        with suppress(OSError):
            state.write(self._files)

    # How it ends: the agent first, so that nobody submits; then the jobs, through the server; then the rest.

    def _stop_all(self) -> None:
        for service in self._services.values():
            service.restart_at = None
            if self._n_stops >= 2:
                self._ask_to_end(service)
        self._tell(Phase.STOPPING_AGENT)
        self._stop(AGENT)
        self._tell(Phase.STOPPING_JOBS)
        self._stop_jobs()
        self._tell(Phase.STOPPING_SERVICES)
        self._stop(SERVER)
        self._stop(MLFLOW)

    def _stop_jobs(self) -> None:
        """Ask the server to part with its jobs and to end; it takes as long as the jobs' grace."""
        server, wanted = self._services[SERVER], self._wanted_for_jobs()
        if wanted is JobsAtStop.LEAVE:
            return
        if self._is_running(server) and ask_to_stop_jobs(self._settings, wanted):
            while self._is_running(server) and self._n_stops < 2:
                self._wait(None)
        else:
            self._has_left_jobs = True

    def _wanted_for_jobs(self) -> JobsAtStop:
        try:
            return JobsAtStop(self._files.stop_request.read_text().strip())
        except (OSError, ValueError):
            return JobsAtStop.REQUEUE

    def _stop(self, name: str) -> None:
        service = self._services.get(name)
        if service is None or not self._is_running(service):
            return
        process = service.process
        assert process is not None
        self._ask_to_end(service)
        grace_ends = time.monotonic() + service.command.stop_grace_s
        while self._is_running(service) and (left_s := self._sooner(grace_ends) - time.monotonic()) > 0:
            self._wait(left_s)
        if self._is_running(service):
            kill(service.command, process.pid)
            process.wait()
            self._reaped(service)

    def _ask_to_end(self, service: Service) -> None:
        """Once: a second signal would keep it from ending in order."""
        if service.process is not None and not service.is_asked_to_end:
            service.is_asked_to_end = True
            ask_to_end(service.process.pid)

    def _sooner(self, deadline: float) -> float:
        if self._n_stops < 2:
            return deadline
        if self._at_once_by is None:
            self._at_once_by = time.monotonic() + AT_ONCE_S
        return min(deadline, self._at_once_by)

    def _is_running(self, service: Service) -> bool:
        self._reaped(service)
        return service.process is not None


def _wakeup_pipe() -> int:
    """The read end of a pipe into which every signal writes a byte."""
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    return read_end


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="nightlab.services.supervisor")
    parser.add_argument("home", type=Path)
    parser.add_argument("--lifeline", type=int, help="stop when this file descriptor reaches its end")
    given = parser.parse_args(arguments)
    files = ServiceFiles(given.home)
    lock = os.open(files.supervisor_lock, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print(f"another supervisor runs for {given.home}", file=sys.stderr)
        return 3
    files.stop_request.unlink(missing_ok=True)
    os.truncate(lock, 0)
    os.write(lock, str(os.getpid()).encode())
    settings = ServiceSettings.from_json(files.settings.read_text())
    Supervisor(settings, service_commands(settings), lifeline=given.lifeline, alone_s=ALONE_S).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
