"""The steps of a start: ports, the supervisor's process, the wait for the runtime's first answer."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from agent.log_files import rotate
from nightlab.failure import Failure, work_failed, wrong_use

from .health import answers
from .ports import free_ports, holder_of, is_free
from .programs import SERVER
from .settings import ServiceFiles, ServiceSettings
from .state import ServicePhase, read_state

START_TIMEOUT_S = 90.0
POLL_S = 0.05
CAN_NOT_START = 2
"""Exit code of a server that says why it can not start."""
N_FAILED_STARTS = 2
"""A server that died this often before it ever answered will not come up."""


@dataclass(frozen=True, slots=True)
class SupervisorProcess:
    process: subprocess.Popen[bytes]
    lifeline: int | None
    """Write end of a pipe: when it closes, the supervisor stops. None: it is on its own."""


def with_ports(settings: ServiceSettings, before: ServiceSettings | None = None) -> ServiceSettings:
    """Fill in free ports where 0 was asked for, and refuse taken ones.

    Args:
        before: what the services of this home ran with last. Its ports are taken again where they are free, because
            training that still runs, and links that people have kept, know no others.
    """
    chosen = iter(free_ports(2))
    if settings.port == 0:
        settings = replace(settings, port=_free_again(before.port if before else None) or next(chosen))
    if settings.mlflow_port == 0:
        known = _free_again(before.mlflow_port if before else None)
        settings = replace(settings, mlflow_port=known if known not in (None, settings.port) else next(chosen))
    _refuse_taken(settings.port, "the runtime", "--port")
    if settings.mlflow_port is not None:
        _refuse_taken(settings.mlflow_port, "MLflow", "--mlflow-port")
    return settings


def _free_again(port: int | None) -> int | None:
    return port if port and is_free(port) else None


def _refuse_taken(port: int, purpose: str, option: str) -> None:
    if is_free(port):
        return
    holder = holder_of(port)
    by_whom = f" by {holder}" if holder else ""
    raise wrong_use(
        f"port {port}, wanted for {purpose}, is in use{by_whom}. "
        f"Choose another one with {option} N ({option} 0 takes any free one).",
        code="port_in_use",
        path=option.lstrip("-"),
    )


def spawn_supervisor(settings: ServiceSettings, *, is_tied: bool) -> SupervisorProcess:
    """Start it in a session of its own, tied to our life or not."""
    files = ServiceFiles(settings.home)
    files.state.unlink(missing_ok=True)
    log = files.log("supervisor")
    rotate(log)
    argv = [sys.executable, "-m", "nightlab.services.supervisor", str(settings.home)]
    read_end, write_end = os.pipe()
    if is_tied:
        argv += ["--lifeline", str(read_end)]
    with log.open("ab") as output:
        process = subprocess.Popen(
            argv,
            cwd=settings.home,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=(read_end,) if is_tied else (),
        )
    os.close(read_end)
    if is_tied:
        return SupervisorProcess(process, write_end)
    os.close(write_end)
    return SupervisorProcess(process, None)


@contextmanager
def interrupts_deferred() -> Iterator[None]:
    """Ctrl-C inside counts when it is over: a process is either not started or known. Main thread alone."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _frame: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        raise KeyboardInterrupt


def await_answer(settings: ServiceSettings, supervisor: subprocess.Popen[bytes]) -> None:
    """Return when the runtime answers.

    Raises:
        Failure: it will not, or has not in time; the message quotes the log.
    """
    deadline = time.monotonic() + START_TIMEOUT_S
    while not answers(f"{settings.url}/v1/health"):
        if supervisor.poll() is not None:
            raise _not_started(settings, "the supervisor of the services ended at once.", "supervisor")
        if _gave_up(settings):
            raise _not_started(settings, "the runtime does not start.", SERVER)
        if time.monotonic() > deadline:
            raise _not_started(settings, f"no answer at {settings.url} within {START_TIMEOUT_S:.0f} s.", SERVER)
        time.sleep(POLL_S)


def _gave_up(settings: ServiceSettings) -> bool:
    state = read_state(ServiceFiles(settings.home))
    server = None if state is None else state.services.get(SERVER)
    if server is None or server.phase is ServicePhase.RUNNING:
        return False
    return server.last_exit == CAN_NOT_START or server.n_restarts >= N_FAILED_STARTS


def _not_started(settings: ServiceSettings, what: str, service: str) -> Failure:
    """With the last line of the log, which is where a failed start says why."""
    log = ServiceFiles(settings.home).log(service)
    try:
        lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    except OSError:
        lines = []
    said = f" It said: {lines[-1]}." if lines else ""
    return work_failed(f"{what}{said} The whole log: {log}", code="not_started", kind="unavailable")
