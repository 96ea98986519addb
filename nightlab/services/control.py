"""Starting, stopping and asking after the services, for the command line and the demo.

`start_services(home, devices="cpu:2")` is the programmatic door: a context manager whose services end with the
calling process, also when that is killed.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from nightlab.failure import wrong_use

from .leftovers import end_leftovers
from .processes import runs_module
from .settings import JobsAtStop, ServiceFiles, ServiceSettings, write_private
from .starting import SupervisorProcess, await_answer, interrupts_deferred, spawn_supervisor, with_ports
from .state import Phase, SupervisorState, is_locked, locked, read_state

if TYPE_CHECKING:
    from runtime_client.client import RuntimeClient

POLL_S = 0.05
REPEAT_S = 1.0
"""Between two orders to stop at once; more of them change nothing."""
SPECIAL_IN_URLS = "?#%"
"""MLflow takes its database and its artifacts as URLs, in which a path can not have these."""

Watcher = Callable[[Phase], None]
"""Called again and again while services stop, with what they are at."""


def is_up(home: Path) -> bool:
    """Whether a supervisor runs for this home. The server may still be starting."""
    return is_locked(ServiceFiles(home).supervisor_lock)


def present_settings(home: Path) -> ServiceSettings | None:
    """What the services of this home run with, or ran with last; None: never."""
    try:
        return ServiceSettings.from_json(ServiceFiles(home).settings.read_text())
    except (OSError, ValueError, KeyError, TypeError):
        return None


def start(settings: ServiceSettings, *, is_tied: bool = False, policy: str | None = None) -> Services:
    """Start everything and return when the runtime answers; MLflow and the agent come up behind it.

    With `is_tied` the services stop when this process ends, however it ends. `policy` is the text of a policy file,
    which stays in force until another one is given; empty: the default. None: as before.

    Raises:
        Failure: services run already, a port is taken, or the server does not come up.
    """
    _check_home(settings.home)
    files = ServiceFiles(settings.home)
    files.make(with_mlflow=settings.mlflow_port is not None)
    with locked(files.command_lock):
        if is_up(settings.home):
            raise wrong_use(f"nightlab is already up for {settings.home}; stop it with: nightlab down", code="up")
        end_leftovers(files)
        settings = with_ports(settings, present_settings(settings.home))
        before = _set_policy(files, policy)
        write_private(files.settings, settings.to_json())
        services = Services(settings)
        try:
            with interrupts_deferred():
                supervisor = spawn_supervisor(settings, is_tied=is_tied)
                services = Services(settings, supervisor=supervisor)
            await_answer(settings, supervisor.process)
        except BaseException:
            services.stop_at_once()
            _set_policy(files, before)
            raise
    return services


def _set_policy(files: ServiceFiles, text: str | None) -> str | None:
    """Put a policy in force for the next server. Returns the one before, for this same function; None: unchanged."""
    if text is None:
        return None
    before = files.policy.read_text(encoding="utf-8") if files.policy.exists() else ""
    if text:
        write_private(files.policy, text)
    else:
        files.policy.unlink(missing_ok=True)
    return before


def _check_home(home: Path) -> None:
    found = [character for character in SPECIAL_IN_URLS if character in str(home)]
    if found:
        raise wrong_use(
            f"the home folder {str(home)!r} has {' '.join(found)} in its path, which is special in the addresses of "
            "databases; choose another folder with --home.",
            code="bad_home",
            path="home",
        )


def start_services(
    home: Path,
    *,
    devices: str = "auto",
    port: int = 0,
    mlflow: bool = True,
    mlflow_url: str | None = None,
    mlflow_port: int = 0,
    database_url: str | None = None,
    agent: bool = True,
) -> Services:
    """Start services that end with this process. Port 0 takes a free one, that of the last time where it can.

    Args:
        mlflow: whether records are mirrored to an MLflow server: ours, or the one at `mlflow_url`.
        agent: whether the agent service runs too.

    Raises:
        Failure: as `start`.
    """
    is_ours = mlflow and mlflow_url is None
    settings = ServiceSettings(
        home=home.resolve(),
        devices=devices,
        port=port,
        mlflow_url=mlflow_url if mlflow else None,
        mlflow_port=mlflow_port if is_ours else None,
        database_url=database_url,
        agent=agent,
    )
    return start(settings, is_tied=True)


class Services:
    """Running services. Leaving the context stops them; running jobs are requeued and resume at the next start."""

    def __init__(self, settings: ServiceSettings, *, supervisor: SupervisorProcess | None = None) -> None:
        """`supervisor`: None for services that another process started."""
        self.settings = settings
        self._files = ServiceFiles(settings.home)
        self._supervisor = supervisor

    @property
    def url(self) -> str:
        return self.settings.url

    @property
    def mlflow_url(self) -> str | None:
        """Where MLflow is or will be; it answers up to half a minute after the runtime."""
        return self.settings.tracking_url

    @cached_property
    def client(self) -> RuntimeClient:
        from runtime_client.client import RuntimeClient

        return RuntimeClient.from_home(self.settings.home)

    def state(self) -> SupervisorState | None:
        return read_state(self._files)

    def stop(
        self, *, jobs: JobsAtStop = JobsAtStop.REQUEUE, cancel_jobs: bool = False, watch: Watcher | None = None
    ) -> None:
        """Stop in order and return when nothing of the services is left. Stopping what is stopped is no error."""
        wanted = JobsAtStop.CANCEL if cancel_jobs else jobs
        with locked(self._files.command_lock):
            self._end_supervisor(wanted, signal.SIGTERM, watch)
        self._release()

    def stop_at_once(self) -> None:
        """Do not wait for jobs: training is left to its launcher, and adopted by the next start."""
        self._end_supervisor(JobsAtStop.LEAVE, signal.SIGQUIT, None)
        self._release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _end_supervisor(self, jobs: JobsAtStop, number: signal.Signals, watch: Watcher | None) -> None:
        signalled: int | None = None
        repeat_at = float("inf")
        while is_up(self.settings.home) or self._is_ours_starting():
            pid = _supervisor_pid(self._files) or self._own_pid()
            if pid is not None and (pid != signalled or time.monotonic() >= repeat_at):
                self._ask(jobs, must_reach=number is signal.SIGTERM)
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
                signalled = pid
                if number is signal.SIGQUIT:  # what a shell puts in the background ignores it while it starts
                    repeat_at = time.monotonic() + REPEAT_S
            state = self.state()
            if watch is not None and state is not None:
                watch(state.phase)
            time.sleep(POLL_S)
        end_leftovers(self._files)

    def _own_pid(self) -> int | None:
        return None if self._supervisor is None else self._supervisor.process.pid

    def _is_ours_starting(self) -> bool:
        """Our supervisor is not yet where it can be seen; a signal ends it there before it has started anything."""
        return self._supervisor is not None and self._supervisor.process.poll() is None

    def _ask(self, jobs: JobsAtStop, *, must_reach: bool) -> None:
        """Write the request that the supervisor reads; without one it requeues.

        Raises:
            OSError: it can not be written, as on a full disk, and another fate of the jobs must be asked for.
        """
        try:
            self._files.stop_request.unlink(missing_ok=True)
            write_private(self._files.stop_request, jobs.value)
        except OSError:
            if must_reach and jobs is not JobsAtStop.REQUEUE:
                raise

    def _release(self) -> None:
        client = self.__dict__.pop("client", None)
        if client is not None:
            client.close()
        if self._supervisor is not None:
            self._supervisor.process.wait()
            if self._supervisor.lifeline is not None:
                os.close(self._supervisor.lifeline)
            self._supervisor = None


def differences(wanted: ServiceSettings, present: ServiceSettings, names: Sequence[str]) -> list[str]:
    """What of these settings is not as wanted, as `devices: cpu:2 (asked: cpu:4)`."""
    return [
        f"{name}: {_shown(getattr(present, name))} (asked: {_shown(getattr(wanted, name))})"
        for name in names
        if getattr(present, name) != getattr(wanted, name)
    ]


def _shown(value: object) -> str:
    return "none" if value is None else str(value)


def _supervisor_pid(files: ServiceFiles) -> int | None:
    """As the supervisor wrote it into the file that it holds locked; None: it has not yet."""
    try:
        pid = int(files.supervisor_lock.read_text())
    except (OSError, ValueError):
        return None
    return pid if runs_module(pid, "nightlab.services.supervisor") else None
