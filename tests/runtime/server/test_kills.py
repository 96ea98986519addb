"""A real server process with real jobs, killed with SIGKILL: the next one takes over and starts nothing twice."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import until
from server_process import Process, end_leftovers

from runtime_client.errors import ServerFault, Unreachable
from runtime_client.models import JobSpec

pytestmark = pytest.mark.kills


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Process]:
    found = Process(tmp_path)
    yield found
    if found.popen is not None and found.popen.poll() is None:
        found.stop()
    end_leftovers(tmp_path)


def counting(folder: Path, name: str, seconds: float) -> JobSpec:
    """A job that leaves one line for every time it was started."""
    command = f"echo started >> {folder}/{name}; sleep {seconds}; echo done >> {folder}/{name}"
    return JobSpec(experiment_name="kills", command=command, idempotency_token=name)


def lines(folder: Path, name: str) -> list[str]:
    path = folder / name
    return path.read_text().split() if path.exists() else []


def test_running_jobs_survive_the_server_and_none_is_started_twice(process: Process, tmp_path: Path) -> None:
    client = process.start()
    specs = [counting(tmp_path, name, 6) for name in ("a", "b", "c")]
    jobs = [result.job for result in client.submit_many(specs)]
    assert all(jobs)
    until(lambda: lines(tmp_path, "a") and lines(tmp_path, "b"), timeout_s=20)
    process.kill()
    with pytest.raises(Unreachable):
        client.info()
    client = process.start()
    assert [client.submit(spec).job_id for spec in specs] == ["j1", "j2", "j3"]
    for name, job_id in (("a", "j1"), ("b", "j2"), ("c", "j3")):
        ended = client.await_end(job_id, timeout_s=60)
        assert (ended.state, len(ended.attempts)) == ("succeeded", 1)
        assert lines(tmp_path, name) == ["started", "done"]


def test_a_job_that_ends_while_no_server_is_there_has_succeeded(process: Process, tmp_path: Path) -> None:
    client = process.start()
    client.submit(counting(tmp_path, "a", 1))
    until(lambda: lines(tmp_path, "a"), timeout_s=20)
    process.kill()
    until(lambda: len(lines(tmp_path, "a")) == 2, timeout_s=20)
    ended = process.start().await_end("j1", timeout_s=30)
    assert (ended.state, len(ended.attempts)) == ("succeeded", 1)


def test_kills_at_many_points_lose_no_acknowledged_job_and_double_none(process: Process, tmp_path: Path) -> None:
    client = process.start()
    acknowledged: dict[str, str] = {}
    for n_round in range(4):
        pause_s = 0.02 + 0.13 * n_round
        deadline = time.monotonic() + pause_s
        n = 0
        while time.monotonic() < deadline or n == 0:
            name = f"r{n_round}n{n}"
            acknowledged[name] = client.submit(counting(tmp_path, name, 0)).job_id
            n += 1
        process.kill()
        client = process.start()
    for name, job_id in acknowledged.items():
        ended = client.await_end(job_id, timeout_s=60)
        assert (ended.state, len(ended.attempts)) == ("succeeded", 1), ended
        assert lines(tmp_path, name) == ["started", "done"]
    assert len(client.jobs(limit=1000)) == len(acknowledged)


def test_an_orderly_end_leaves_jobs_running(process: Process, tmp_path: Path) -> None:
    client = process.start()
    client.submit(counting(tmp_path, "a", 4))
    until(lambda: lines(tmp_path, "a"), timeout_s=20)
    assert process.stop() == 0
    assert not (tmp_path / "server.json").exists()
    ended = process.start().await_end("j1", timeout_s=30)
    assert (ended.state, lines(tmp_path, "a")) == ("succeeded", ["started", "done"])


def test_a_cancelled_job_stays_cancelled_over_a_kill(process: Process, tmp_path: Path) -> None:
    client = process.start()
    script = "trap '' TERM; echo started >> " + f"{tmp_path}/a; while true; do sleep 0.1; done"
    client.submit(JobSpec(experiment_name="kills", command=script, grace_seconds=2))
    until(lambda: lines(tmp_path, "a"), timeout_s=20)
    client.cancel("j1", reason="enough")
    process.kill()
    ended = process.start().await_end("j1", timeout_s=30)
    assert (ended.state, ended.state_reason, len(ended.attempts)) == ("cancelled", "enough", 1)


def test_a_second_server_for_the_home_names_the_first(process: Process, tmp_path: Path) -> None:
    client = process.start()
    command = [sys.executable, "-m", "runtime.server", "--home", str(tmp_path), "--port", "0", "--devices", "cpu:1"]
    second = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert process.popen is not None
    assert second.returncode == 2
    assert f"process {process.popen.pid}" in second.stderr
    assert "Traceback" not in second.stderr
    try:
        client.info()
    except ServerFault as error:
        pytest.fail(f"the first server was disturbed: {error}")
