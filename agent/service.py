"""The agent service: keeps one child process alive for every session and every night that is running.

Sessions that were running when it (or the machine) went down go on by themselves. It holds no judgement and imports
neither the graph nor the samplers: it reads one small table once a second. `python -m agent.service --home HOME`.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import IO

from agent.log_files import cut, forget_oldest, rotate
from agent.store.faults import DiskFull, StoreUnusable, full_disk_named
from agent.store.nights import NightStore
from agent.store.store import AgentStore
from agent.store.tellings import TellingStore
from agent.sweeps.views import NightState

LOOK_EVERY_S = 1.0
MESSAGES_EVERY_S = 10.0
LEAVE_S = 15.0
"""Given to the children to leave in order; killed after that."""
N_CRASHES = 5
"""So many crashes in a row without a trial that ended between them end a session."""
CALM_S = 600.0
"""A night's process that died so long after the crash before begins to count anew."""
N_NIGHT_LOGS = 100
N_SESSION_LOGS = 400
"""So many logs are kept, the newest; those of processes that live beyond that."""
LOGS_EVERY_S = 60.0
BACKOFF_S = (1.0, 2.0, 5.0, 10.0, 30.0)


class ServiceRuns(Exception):
    """Another agent service works for this home."""


Spawn = Callable[[Path, str], "subprocess.Popen[bytes]"]
"""Starts the process of a session, given the home and the session's id."""


@dataclass(slots=True)
class _Crashes:
    n: int = 0
    not_before: float = 0.0
    n_ended: int = 0
    """Trials that had ended at the last crash."""


@dataclass(slots=True)
class _Care:
    """What the service knows of its children, by session id; times by the monotonic clock."""

    spawn: Spawn
    backoff_s: tuple[float, ...]
    spawn_night: Spawn
    children: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    nights: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    """Their processes, by the ids of the nights."""
    night_crashes: dict[str, _Crashes] = field(default_factory=dict)
    crashes: dict[str, _Crashes] = field(default_factory=dict)
    messenger: subprocess.Popen[bytes] | None = None
    """Tells people of sessions, while there is one of which somebody wants to be told."""
    look_for_messages_at: float = 0.0
    logs_at: float = 0.0
    """When the logs are looked at again."""


def run_service(
    home: Path,
    *,
    leaving: threading.Event | None = None,
    spawn: Spawn | None = None,
    spawn_night: Spawn | None = None,
    backoff_s: Sequence[float] = BACKOFF_S,
    with_api: bool = False,
) -> None:
    """Work until SIGTERM or Ctrl-C (or until `leaving` is set); then let all children leave in order.

    Args:
        spawn: None starts `agent.frontdoors.research`.
        spawn_night: None starts `agent.frontdoors.nightly`.
        backoff_s: waits before a restart, after the first, second, ... crash in a row; the last one repeats.
        with_api: serve the HTTP API (`agent.web`) beside it; a home whose API can not be served does without.

    Raises:
        ServiceRuns: another service works for this home.
        StoreUnusable: as `AgentStore.open`.
    """
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    is_leaving = leaving or _on_signals()
    with (home / "agent.service.lock").open("a") as lock:
        _take(lock, home)
        store = AgentStore.open(home)
        care = _Care(spawn=spawn or _spawn, spawn_night=spawn_night or _spawn_night, backoff_s=tuple(backoff_s))
        try:
            with _api(home, is_on=with_api):
                _look_after(store, care, home, is_leaving)
        finally:
            _let_leave(care)
            store.close()


def _look_after(store: AgentStore, care: _Care, home: Path, is_leaving: threading.Event) -> None:
    nights, tellings = NightStore(store), TellingStore(store)
    while not is_leaving.is_set():
        with suppress(DiskFull), full_disk_named():
            _reap(store, care, home)
            _start_missing(store, care, home)
            _keep_nights(nights, care, home)
            _keep_messenger(tellings, care, home)
            _bound_logs(care, home)
        is_leaving.wait(LOOK_EVERY_S)


@contextmanager
def _api(home: Path, *, is_on: bool) -> Iterator[None]:
    """The HTTP API while the block lasts; its modules are loaded only where it is wanted."""
    if not is_on:
        yield
        return
    from agent.web.serving import served

    with served(home):
        yield


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Keep research sessions running.")
    parser.add_argument("--home", type=Path, required=True)
    given = parser.parse_args(arguments)
    try:
        run_service(given.home, with_api=True)
    except (ServiceRuns, StoreUnusable) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def log_path(home: Path, session_id: str) -> Path:
    """Where a session's process writes its standard output and errors."""
    return home / "logs" / f"session-{session_id}.log"


def night_log_path(home: Path, night_id: str) -> Path:
    """Where a night's process writes what it does."""
    return home / "logs" / f"night-{night_id}.log"


def _on_signals() -> threading.Event:
    leaving = threading.Event()

    def leave(_signum: int, _frame: FrameType | None) -> None:
        leaving.set()

    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGINT, leave)
    return leaving


def _take(lock: IO[str], home: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise ServiceRuns(f"an agent service works for {home} already") from error


def _start_missing(store: AgentStore, care: _Care, home: Path) -> None:
    for session_id in store.runnable():
        if session_id in care.children or care.crashes.get(session_id, _Crashes()).not_before > time.monotonic():
            continue
        if not store.is_held(session_id):
            care.children[session_id] = care.spawn(home, session_id)


def _keep_nights(nights: NightStore, care: _Care, home: Path) -> None:
    """A night whose process died is taken up again after a pause; one that dies again and again is given up.

    One that was given up has a process again, which ends what is left of its jobs and writes its page.
    """
    for night_id, child in list(care.nights.items()):
        code = child.poll()
        if code is None:
            continue
        del care.nights[night_id]
        if code == 0:
            care.night_crashes.pop(night_id, None)
            continue
        crashes = care.night_crashes.setdefault(night_id, _Crashes())
        is_long_ago = time.monotonic() - crashes.not_before > CALM_S
        crashes.n = 1 if is_long_ago else crashes.n + 1
        crashes.not_before = time.monotonic() + care.backoff_s[min(crashes.n, len(care.backoff_s)) - 1]
        if crashes.n >= N_CRASHES and not nights.is_held(night_id):
            how = f"exit code {code}" if code > 0 else f"signal {-code}"
            where = night_log_path(home, night_id)
            words = f"the night's process ended {crashes.n} times in a row ({how}); its log is {where}"
            _give_up_night(nights, night_id, words)
            crashes.n = 0
    for night_id in nights.runnable():
        is_due = care.night_crashes.get(night_id, _Crashes()).not_before <= time.monotonic()
        if night_id not in care.nights and is_due and not nights.is_held(night_id):
            care.nights[night_id] = care.spawn_night(home, night_id)


def _give_up_night(nights: NightStore, night_id: str, words: str) -> None:
    """First the night; what is owed after its end, its page and its messages, only when that kills its process too."""
    if nights.night(night_id).state is NightState.ENDED:
        nights.leave_unsettled(night_id)
    else:
        nights.fail(night_id, words)


def _keep_messenger(tellings: TellingStore, care: _Care, home: Path) -> None:
    """One process tells people of all sessions; it ends by itself when there is nothing to tell."""
    if care.look_for_messages_at > time.monotonic():
        return
    care.look_for_messages_at = time.monotonic() + MESSAGES_EVERY_S
    if care.messenger is not None and care.messenger.poll() is None:
        return
    care.messenger = _spawn_door("messenger", home, [], home / "logs" / "messenger.log") if tellings.to_tell() else None


def _spawn(home: Path, session_id: str) -> subprocess.Popen[bytes]:
    return _spawn_door("research", home, ["--session", session_id], log_path(home, session_id))


def _spawn_night(home: Path, night_id: str) -> subprocess.Popen[bytes]:
    return _spawn_door("nightly", home, ["--night", night_id], night_log_path(home, night_id))


def _spawn_door(door: str, home: Path, which: list[str], path: Path) -> subprocess.Popen[bytes]:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    rotate(path)
    argv = [sys.executable, "-m", f"agent.frontdoors.{door}", "--home", str(home), *which]
    with path.open("ab") as log:
        given = [*argv, "--parent-pid", str(os.getpid())]
        return subprocess.Popen(given, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def _bound_logs(care: _Care, home: Path) -> None:
    """Those that are being written too: a process that complains without end does not fill the disk."""
    if time.monotonic() < care.logs_at:
        return
    care.logs_at = time.monotonic() + LOGS_EVERY_S
    nights = [night_log_path(home, night_id) for night_id in care.nights]
    sessions = [log_path(home, session_id) for session_id in care.children]
    for log in (*nights, *sessions):
        cut(log)
    forget_oldest(home / "logs", "night-*.log", keep=N_NIGHT_LOGS, but=nights)
    forget_oldest(home / "logs", "session-*.log", keep=N_SESSION_LOGS, but=sessions)


def _reap(store: AgentStore, care: _Care, home: Path) -> None:
    for session_id, child in list(care.children.items()):
        code = child.poll()
        if code is None:
            continue
        del care.children[session_id]
        if code == 0:
            care.crashes.pop(session_id, None)
            continue
        crashes = care.crashes.setdefault(session_id, _Crashes())
        n_ended = store.n_ended_trials(session_id)
        crashes.n = 1 if n_ended > crashes.n_ended else crashes.n + 1
        crashes.n_ended = n_ended
        crashes.not_before = time.monotonic() + care.backoff_s[min(crashes.n, len(care.backoff_s)) - 1]
        if crashes.n >= N_CRASHES and not store.is_held(session_id):
            how = f"exit code {code}" if code > 0 else f"signal {-code}"
            where = log_path(home, session_id)
            message = f"the session's process ended {crashes.n} times in a row ({how}); its log is {where}"
            store.fail(session_id, message)
            del care.crashes[session_id]


def _let_leave(care: _Care) -> None:
    children = [*care.nights.values(), *care.children.values()]
    if care.messenger is not None:
        children.append(care.messenger)
    for child in children:
        if child.poll() is None:
            child.terminate()
    deadline = time.monotonic() + LEAVE_S
    for child in children:
        try:
            child.wait(timeout=max(deadline - time.monotonic(), 0.1))
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


if __name__ == "__main__":
    sys.exit(main())
