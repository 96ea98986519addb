"""The agent service with real processes: children are started, started again, and never outlive it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from agent_worlds import a_task

from agent.service import N_CRASHES, ServiceRuns, run_service
from agent.store.nights import NightStore
from agent.store.store import AgentStore
from agent.store.views import SessionState
from agent.sweeps.cells import Cell
from agent.sweeps.sweep import RandomMethod, Sweep
from agent.sweeps.views import NightOutcome, NightState


def until(condition: Callable[[], bool], *, timeout_s: float = 40.0) -> None:
    """Poll until it holds."""
    deadline = time.monotonic() + timeout_s
    waiting = threading.Event()
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        waiting.wait(0.05)


@contextmanager
def a_service(home: Path) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-m", "agent.service", "--home", str(home)])
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(timeout=30)


def is_gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


@pytest.mark.kills
def test_a_killed_session_process_is_started_again_and_nothing_outlives_the_service(tmp_path: Path) -> None:
    store = AgentStore.open(tmp_path)
    store.create_session(a_task())
    with a_service(tmp_path) as service:
        until(lambda: store.is_held("s1"))
        first = store.session("s1")
        assert first.pid is not None
        os.kill(first.pid, signal.SIGKILL)
        until(lambda: store.session("s1").fence > first.fence and store.is_held("s1"))
        until(lambda: any("waiting for the runtime" in line.text for line in store.activity("s1")))
        second = store.session("s1").pid
        assert second is not None
        service.terminate()
        assert service.wait(timeout=30) == 0
        assert is_gone(second)
    session = store.session("s1")
    assert (session.state, session.pid) == (SessionState.RUNNING, None)


@pytest.mark.kills
def test_a_session_process_leaves_when_its_service_is_killed(tmp_path: Path) -> None:
    store = AgentStore.open(tmp_path)
    store.create_session(a_task())
    with a_service(tmp_path) as service:
        until(lambda: any("waiting for the runtime" in line.text for line in store.activity("s1")))
        child = store.session("s1").pid
        assert child is not None
        service.kill()
        until(lambda: is_gone(child))
    assert store.session("s1").state is SessionState.RUNNING


def test_a_stop_is_obeyed_while_the_runtime_is_away(tmp_path: Path) -> None:
    store = AgentStore.open(tmp_path)
    store.create_session(a_task())
    with a_service(tmp_path):
        until(lambda: store.is_held("s1"))
        store.request_stop("s1")
        until(lambda: store.session("s1").state is SessionState.STOPPED)
        until(lambda: not store.is_held("s1"))


def test_a_second_service_for_the_same_home_is_refused(tmp_path: Path) -> None:
    with a_service(tmp_path):
        until(lambda: (tmp_path / "agent.db").exists())
        with pytest.raises(ServiceRuns, match="already"):
            run_service(tmp_path)


@pytest.mark.kills
def test_a_process_that_dies_again_and_again_fails_the_session_with_its_log(tmp_path: Path) -> None:
    store = AgentStore.open(tmp_path)
    store.create_session(a_task())
    leaving = threading.Event()
    n_started: list[int] = []

    def spawn(_home: Path, _session_id: str) -> subprocess.Popen[bytes]:
        n_started.append(1)
        return subprocess.Popen([sys.executable, "-S", "-c", "raise SystemExit(4)"])

    service = threading.Thread(
        target=run_service, args=(tmp_path,), kwargs={"leaving": leaving, "spawn": spawn, "backoff_s": (0.0,)}
    )
    service.start()
    try:
        until(lambda: store.session("s1").state is SessionState.FAILED)
    finally:
        leaving.set()
        service.join()
    assert len(n_started) == N_CRASHES
    assert "exit code 4" in store.session("s1").message
    assert "session-s1.log" in store.session("s1").message


@pytest.mark.kills
def test_a_night_whose_process_dies_again_and_again_is_given_up_with_its_log_and_its_sessions_stop(
    tmp_path: Path,
) -> None:
    nights = NightStore(AgentStore.open(tmp_path))
    sweep = Sweep(sweep="digits", task="t.yaml", method=RandomMethod(kind="random", trials=3))
    night = nights.begin(sweep, file="f", cells=[Cell(name="a", task=a_task())], finish_by=None).night
    assert night is not None
    nights.start_cell(night.night_id, 0, 0)
    leaving = threading.Event()
    n_started: list[str] = []

    def spawn_night(_home: Path, night_id: str) -> subprocess.Popen[bytes]:
        n_started.append(night_id)
        return subprocess.Popen([sys.executable, "-S", "-c", "raise SystemExit(4)"])

    def spawn(_home: Path, _session_id: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-S", "-c", ""])

    given = {"leaving": leaving, "spawn": spawn, "spawn_night": spawn_night, "backoff_s": (0.0,)}
    service = threading.Thread(target=run_service, args=(tmp_path,), kwargs=given)
    service.start()
    try:
        until(lambda: nights.night(night.night_id).settled_at is not None)
    finally:
        leaving.set()
        service.join()
    n_for_page = n_started.count(night.night_id) - N_CRASHES
    assert n_for_page == N_CRASHES, "the page of a night that was given up is tried, and given up too"
    assert nights.night(night.night_id).state is NightState.ENDED
    found = nights.night(night.night_id)
    assert found.outcome is NightOutcome.FAILED
    assert "exit code 4" in found.message
    assert "night-digits-n1.log" in found.message
    assert nights.store.session("s1").state is SessionState.STOPPING


@pytest.mark.parametrize("module", ["agent.service", "agent.task", "agent.task_file", "agent.llm.opening"])
def test_light_modules_import_no_heavy_ones(module: str) -> None:
    heavy = "langgraph optuna mlflow openai scipy matplotlib alembic fastapi"
    code = f"import sys, {module}; print([n for n in {heavy.split()} if n in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_the_graph_is_not_made_at_import() -> None:
    code = "import agent.graph, agent.session, agent.checkpoints, agent.frontdoors.research, threading;"
    code += "print(threading.active_count())"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "1"
