"""The agent service's API with the real process: its address, its tokens, and answers that outlive a SIGKILL."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from agent.gates.freedom import Action, Course, Ruling
from agent.gates.gate import Answer, GateKind
from agent.store.fenced import FencedWriter
from agent.store.gates import GateBook
from agent.store.store import AgentStore
from agent.task import Task
from agent.web.address import ADDRESS_FILE
from agent.web.keys import OWNER_FILE

pytestmark = [pytest.mark.acceptance, pytest.mark.kills]
TASK = {
    "task": "toy",
    "objective": {"metric": "score", "direction": "maximize"},
    "job": {"command": "train"},
    "space": {"x": {"type": "float", "low": 0.0, "high": 1.0, "default": 0.2}},
    "budgets": {"trials": 6},
}


@contextmanager
def a_service(home: Path) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-m", "agent.service", "--home", str(home)])
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(timeout=30)


def own_port(home: Path) -> None:
    """As if this home's service had been on a free port before: others who start meanwhile try the usual one."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        (home / ADDRESS_FILE).write_text(json.dumps({"port": free.getsockname()[1], "pid": 0}))


def client_of(home: Path, pid: int) -> httpx.Client:
    """Waits until the service with this pid answers."""
    deadline, waiting = time.monotonic() + 60, threading.Event()
    while True:
        assert time.monotonic() < deadline, "the API did not answer in time"
        waiting.wait(0.05)
        try:
            address = json.loads((home / ADDRESS_FILE).read_text())
            if address["pid"] != pid:
                continue
            httpx.get(address["url"] + "/v1/health").raise_for_status()
        except (OSError, httpx.HTTPError):
            continue
        token = (home / OWNER_FILE).read_text().strip()
        return httpx.Client(base_url=address["url"], headers={"Authorization": f"Bearer {token}"})


def test_an_answer_over_http_and_the_address_outlive_a_killed_service(tmp_path: Path) -> None:
    store = AgentStore.open(tmp_path)
    store.create_session(Task.model_validate(TASK))
    action = Action(subject="c1", kinds=(GateKind.TRIAL,), what="run s1-t1: x=0.5", cost_device_s=None)
    one = Ruling(action=action, course=Course.ASKS, kind=GateKind.TRIAL, why="autonomy.trials: propose")
    writer = FencedWriter(store, "s1", store.claim("s1", 1))
    gate = GateBook(writer).ask([one], answer_within_s=600.0, unanswered=Answer.DENY)[0]
    store.request_stop("s1")
    store.fail("s1", "no process is wanted here")
    own_port(tmp_path)
    with a_service(tmp_path) as first, client_of(tmp_path, first.pid) as client:
        url = client.base_url
        said = client.post(f"/v1/gates/{gate.gate_id}/approve", json={"by": "ada"})
        assert said.status_code == 200
        first.kill()
        first.wait(timeout=30)
    with a_service(tmp_path) as second, client_of(tmp_path, second.pid) as client:
        assert client.base_url == url
        found = client.get(f"/v1/gates/{gate.gate_id}").json()["data"]["gate"]
        assert (found["answer"], found["answered_by"]) == ("approve", "ada")
        with client.stream("GET", "/v1/events", params={"after": 0}) as stream:
            lines = (line for line in stream.iter_lines() if line.startswith("data: "))
            events = [json.loads(next(lines).removeprefix("data: ")) for _ in range(2)]
            second.terminate()
            assert second.wait(timeout=30) == 0
    assert events[1]["text"] == f"gate {gate.gate_id} is approved by ada"
    store.close()
