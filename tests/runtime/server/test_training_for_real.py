"""However a training is interrupted, preempted, without its server, by its hour, its curve is the undisturbed one."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import until
from server_process import Process, end_leftovers

from runtime_client.client import RuntimeClient
from runtime_client.models import JobSpec, JobView
from runtime_client.training.manifest import complete_in

SCRIPTS = Path(__file__).with_name("training_scripts")
N_STEPS = 1500
WITHIN_S = 120.0


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Process]:
    found = Process(tmp_path, devices="cpu:1")
    yield found
    if found.popen is not None and found.popen.poll() is None:
        found.stop()
    end_leftovers(tmp_path)


def undisturbed(script: Path, folder: Path) -> dict[int, float]:
    """Its curve, by running it alone, outside nightlab."""
    folder.mkdir()
    (folder / "hurry").touch()
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("NIGHTLAB_", "MLFLOW_"))}
    done = subprocess.run(
        [sys.executable, str(script), str(N_STEPS), str(folder / "hurry")],
        env=plain | {"OMP_NUM_THREADS": "1"},
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        timeout=WITHIN_S,
    )
    curve = {
        int(step): float(loss) for step, loss in re.findall(r"^step (\d+): loss (\S+)$", done.stdout, re.MULTILINE)
    }
    assert sorted(curve) == list(range(1, N_STEPS + 1))
    return curve


def await_progress(process: Process, *, beyond: int, job_id: str = "j1") -> int:
    """The step of a complete checkpoint that is newer."""

    def newer() -> int | None:
        newest = next((step for step, _ in complete_in(process.home / "attempts" / job_id / "checkpoints")), 0)
        return newest if newest > beyond else None

    return until(newer, timeout_s=WITHIN_S)


def begun(client: RuntimeClient, job_id: str) -> int:
    """The step that a job began with, by its own word: points that a checkpoint owes come later."""
    said = re.search(r"^begins with (\d+)$", client.logs(job_id).text, re.MULTILINE)
    assert said is not None
    return int(said[1])


def preempt(client: RuntimeClient, n_before: int) -> None:
    """Let a job of a higher class take the only device."""
    urgent = client.submit(JobSpec(experiment_name="urgent", command="true", priority_class="critical"))
    assert client.await_end(urgent.job_id, timeout_s=WITHIN_S).state == "succeeded"
    until(lambda: len(client.job("j1").attempts) == n_before + 1, timeout_s=WITHIN_S)


def disturb(process: Process, client: RuntimeClient, hurry: Path) -> JobView:
    """Three preemptions; before the last one the server is killed, and is away while the job makes progress."""
    seen = await_progress(process, beyond=0)
    preempt(client, 1)
    seen = await_progress(process, beyond=seen)
    preempt(client, 2)
    seen = await_progress(process, beyond=seen)
    process.kill()
    seen = await_progress(process, beyond=seen)
    client = process.start()
    preempt(client, 3)
    await_progress(process, beyond=seen)
    hurry.touch()
    return client.await_end("j1", timeout_s=WITHIN_S)


@pytest.mark.parametrize(
    "framework",
    [pytest.param("numpy", marks=pytest.mark.kills), pytest.param("torch", marks=pytest.mark.training)],
)
def test_preempted_three_times_and_over_a_kill_of_the_server_the_curve_is_the_undisturbed_one(
    framework: str, process: Process, tmp_path: Path
) -> None:
    if importlib.util.find_spec(framework) is None:
        pytest.skip(f"{framework} is not installed")
    script, hurry = SCRIPTS / f"with_{framework}.py", tmp_path / "hurry"
    expected = undisturbed(script, tmp_path / "undisturbed")
    client = process.start()
    command = f"{sys.executable} {script} {N_STEPS} {hurry}"
    client.submit(JobSpec(experiment_name="curve", command=command, priority_class="exploratory", grace_seconds=60))

    ended = disturb(process, client, hurry)

    assert (ended.state, ended.n_retries) == ("succeeded", 0)
    assert [attempt.outcome for attempt in ended.attempts] == [*["preempted"] * 3, "succeeded"]
    seen: dict[int, set[float | None]] = {}
    for point in RuntimeClient.from_home(process.home).metrics("j1", keys=["loss"]):
        seen.setdefault(point.step, set()).add(point.value)
    assert seen == {step: {loss} for step, loss in expected.items()}


@pytest.mark.kills
def test_over_three_jobs_of_which_each_goes_on_from_the_one_before_the_curve_is_the_undisturbed_one(
    process: Process, tmp_path: Path
) -> None:
    """The first leaves by its hour; the second is killed together with its server, and cancelled."""
    script, hurry = SCRIPTS / "with_numpy.py", tmp_path / "hurry"
    expected = undisturbed(script, tmp_path / "undisturbed")
    client = process.start()
    training = JobSpec(experiment_name="curve", command=f"{sys.executable} {script} {N_STEPS} {hurry}", grace_seconds=5)
    client.submit(training.model_copy(update={"finish_by": time.time() + 15.0}))
    left = client.await_end("j1", timeout_s=WITHIN_S)
    assert (left.exit_reason, left.attempts[0].exit_code) == ("deadline", 75)
    assert left.checkpoint_step is not None
    client.submit(training.model_copy(update={"continues": "j1"}))
    await_progress(process, beyond=left.checkpoint_step, job_id="j2")
    process.kill()
    client = process.start()
    client.cancel("j2")
    assert client.await_end("j2", timeout_s=WITHIN_S).state == "cancelled"
    hurry.touch()
    client.submit(training.model_copy(update={"continues": "j2"}))
    assert client.await_end("j3", timeout_s=WITHIN_S).state == "succeeded"
    seen: dict[int, set[float | None]] = {}
    for job_id in ("j1", "j2", "j3"):
        for point in client.metrics(job_id, keys=["loss"]):
            seen.setdefault(point.step, set()).add(point.value)
    assert seen == {step: {loss} for step, loss in expected.items()}
    assert [begun(client, job_id) for job_id in ("j1", "j2")] == [1, left.checkpoint_step + 1]
    assert begun(client, "j3") > begun(client, "j2")
