"""With real processes: by its hour a job has left, with a checkpoint if it can and killed if it must, server or not."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import until
from server_process import Process, end_leftovers

from runtime.node import processes, records
from runtime_client.client import RuntimeClient
from runtime_client.models import JobSpec, JobView

pytestmark = pytest.mark.kills

SAVES = """
save() { mkdir "$NIGHTLAB_CHECKPOINT_DIR/step-5" && touch "$NIGHTLAB_CHECKPOINT_DIR/step-5/COMPLETE"; exit 75; }
trap save TERM
touch "$NIGHTLAB_CHECKPOINT_DIR/runs"
while true; do sleep 0.1; done
"""
DEAF = """
trap '' TERM
touch "$NIGHTLAB_CHECKPOINT_DIR/runs"
while true; do sleep 0.1; done
"""


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Process]:
    found = Process(tmp_path, devices="cpu:2")
    yield found
    if found.popen is not None and found.popen.poll() is None:
        found.stop()
    end_leftovers(tmp_path)


def job(command: str, finish_by: float) -> JobSpec:
    return JobSpec(experiment_name="night", command=command, finish_by=finish_by, grace_seconds=1)


def await_runs(home: Path, *job_ids: str) -> None:
    for job_id in job_ids:
        until((home / "attempts" / job_id / "checkpoints" / "runs").exists, timeout_s=30)


def processes_of(home: Path, job_id: str) -> list[tuple[int, int]]:
    found = [records.read(str(path)) for path in (home / "attempts" / job_id).glob("*/started.json")]
    return [(each["pid"], each["start_ticks"]) for each in found if each is not None]


def ends(client: RuntimeClient, *job_ids: str) -> list[JobView]:
    return [client.await_end(job_id, timeout_s=30) for job_id in job_ids]


def test_what_runs_leaves_in_time_or_is_killed_and_what_waits_never_starts(process: Process, tmp_path: Path) -> None:
    client = process.start()
    hour = time.time() + 8.0
    client.submit_many([job(command, hour) for command in (SAVES, DEAF, "true")])
    await_runs(tmp_path, "j1", "j2")
    saved, deaf, waited = ends(client, "j1", "j2", "j3")
    assert [each.state for each in (saved, deaf, waited)] == ["cancelled"] * 3
    assert [each.exit_reason for each in (saved, deaf, waited)] == ["deadline"] * 3
    assert (saved.checkpoint_step, deaf.checkpoint_step, waited.attempts) == (5, None, ())
    assert [each.attempts[0].exit_code for each in (saved, deaf)] == [75, -9]
    last = max(each.ended_at or 0.0 for each in (saved, deaf, waited))
    assert hour - 3.1 < last <= hour
    assert not any(processes.is_alive(*each) for job_id in ("j1", "j2") for each in processes_of(tmp_path, job_id))


def test_a_server_that_was_away_over_the_hour_cancels_before_it_starts_anything(
    process: Process, tmp_path: Path
) -> None:
    client = process.start()
    hour = time.time() + 8.0
    client.submit_many([job(command, hour) for command in (SAVES, DEAF, "true")])
    await_runs(tmp_path, "j1", "j2")
    process.kill()
    assert time.time() < hour - 3.0, "killed before anybody was asked"
    until(lambda: time.time() > hour + 0.5)
    client = process.start()
    saved, deaf, waited = ends(client, "j1", "j2", "j3")
    assert [(each.state, each.exit_reason) for each in (saved, deaf, waited)] == [("cancelled", "deadline")] * 3
    assert (saved.checkpoint_step, saved.attempts[0].exit_code, deaf.attempts[0].exit_code) == (5, 75, -9)
    assert waited.attempts == ()
    assert not any(processes.is_alive(*each) for job_id in ("j1", "j2") for each in processes_of(tmp_path, job_id))


def test_a_job_goes_on_from_the_newest_whole_checkpoint_and_keeps_it_when_the_other_job_is_cleared(
    process: Process, tmp_path: Path
) -> None:
    client = process.start()
    client.submit(job(SAVES, time.time() + 6.0))
    assert ends(client, "j1")[0].checkpoint_step == 5
    (tmp_path / "attempts" / "j1" / "checkpoints" / "step-9").mkdir()
    tells = 'basename "$NIGHTLAB_RESUME_FROM"; echo "$NIGHTLAB_RESUME_FROM" | grep -c "/j[23]/"; sleep 2; exit 3'
    client.submit(JobSpec(experiment_name="night", command=tells, continues="j1"))
    assert ends(client, "j2")[0].checkpoint_step == 5
    assert client.logs("j2").text == "step-5\n1\n"
    for path in (tmp_path / "attempts" / "j1" / "checkpoints").rglob("COMPLETE"):
        path.unlink()
    client.submit(JobSpec(experiment_name="night", command=tells, continues="j2"))
    assert ends(client, "j3")[0].checkpoint_step == 5
    assert client.logs("j3").text == "step-5\n1\n"
    client.submit(JobSpec(experiment_name="night", command='echo "$NIGHTLAB_RESUME_FROM"', continues="j1"))
    assert ends(client, "j4")[0].state == "succeeded"
    assert client.logs("j4").text == "\n"
