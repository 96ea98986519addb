"""A server that is killed while 200 attempts run: the next one has all of them, as they were."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import until
from server_process import Process, end_leftovers

from runtime.node import processes, records
from runtime_client.client import RuntimeClient
from runtime_client.models import JobSpec, JobView

pytestmark = pytest.mark.kills

N = 200


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Process]:
    found = Process(tmp_path, devices=f"fake:{N}xH100")
    yield found
    if found.popen is not None and found.popen.poll() is None:
        found.stop()
    end_leftovers(tmp_path)


def leaders(home: Path) -> dict[str, tuple[int, int]]:
    """Pid and start time of each attempt's leader, as its supervisor recorded them."""
    found = {}
    for path in (home / "attempts").glob("*/*/started.json"):
        record = records.read(str(path))
        if record is not None:
            found[f"{path.parent.parent.name}.{path.parent.name}"] = (record["pid"], record["start_ticks"])
    return found


def views(client: RuntimeClient) -> list[JobView]:
    return [client.job(f"j{n}") for n in range(1, N + 1)]


def test_all_are_adopted_none_restarted_and_none_judged_lost(process: Process, tmp_path: Path) -> None:
    client = process.start()
    command = ("sleep", "100000")
    client.submit_many([JobSpec(experiment_name="x", command=command, idempotency_token=f"t{n}") for n in range(N)])
    before = until(lambda: (len(found := leaders(tmp_path)) == N and found) or None, timeout_s=90)
    for _ in range(2):
        process.kill()
        client = process.start()
        assert {view.state for view in views(client)} <= {"starting", "running"}
        assert leaders(tmp_path) == before
    until(lambda: {view.state for view in views(client)} == {"running"}, timeout_s=60)
    assert all(processes.is_alive(pid, ticks) for pid, ticks in before.values())
    assert {len(view.attempts) for view in views(client)} == {1}
    # Two end while no server is there: one by itself, one whose supervisor is killed too.
    process.kill()
    record = records.read(str(tmp_path / "attempts" / "j2" / "1" / records.SUPERVISOR))
    assert record is not None
    os.kill(before["j1.1"][0], signal.SIGKILL)
    os.kill(record["pid"], signal.SIGKILL)
    client = process.start()
    ended = client.await_end("j1", timeout_s=30)
    assert (ended.state, ended.exit_reason) == ("failed", "killed_by_signal")
    lost = until(lambda: ((view := client.job("j2")).attempts[0].ended_at and view) or None, timeout_s=30)
    assert (lost.attempts[0].outcome, lost.attempts[0].exit_reason) == ("node_lost", "supervisor_lost")
    others = [view for view in views(client) if view.job_id not in ("j1", "j2")]
    assert {(view.state, len(view.attempts)) for view in others} == {("running", 1)}


CHECKPOINTS_ONCE = """
if [ -n "$NIGHTLAB_RESUME_FROM" ]; then basename "$NIGHTLAB_RESUME_FROM"; exit 0; fi
mkdir "$NIGHTLAB_CHECKPOINT_DIR/step-5" && touch "$NIGHTLAB_CHECKPOINT_DIR/step-5/COMPLETE"
mkdir "$NIGHTLAB_CHECKPOINT_DIR/step-6"  # torn
sleep 100000
"""


def test_a_restart_of_the_machine_resumes_from_the_newest_complete_checkpoint(process: Process, tmp_path: Path) -> None:
    """A power cut: everything dies at once, and the records that stay are of another boot."""
    client = process.start()
    client.submit(JobSpec(experiment_name="x", command=CHECKPOINTS_ONCE))
    until(lambda: client.job("j1").checkpoint_step == 5, timeout_s=20)
    process.kill()
    end_leftovers(tmp_path)
    path = tmp_path / "attempts" / "j1" / "1" / records.SUPERVISOR
    record = records.read(str(path))
    assert record is not None
    path.write_text(json.dumps({**record, "boot_id": "the one before"}))
    client = process.start()
    ended = client.await_end("j1", timeout_s=30)
    assert (ended.state, ended.n_retries, len(ended.attempts)) == ("succeeded", 0, 2)
    first = ended.attempts[0]
    assert (first.outcome, first.exit_reason) == ("node_lost", "node_lost")
    assert first.evidence == "the machine was restarted while it ran"
    assert client.logs("j1").text == "step-5\n"
