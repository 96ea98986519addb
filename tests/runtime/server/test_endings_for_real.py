"""Faults injected into real processes on a real server: what users of other systems complain of most, one test each."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from lab import until
from server_process import end_leftovers

from runtime.scheduling.policy import Policy
from runtime.server.config import ServerConfig
from runtime.server.threaded import ThreadedServer, threaded_server
from runtime_client.client import RuntimeClient
from runtime_client.errors import RuntimeClientError
from runtime_client.models import JobSpec, JobView

pytestmark = pytest.mark.kills

MIB = 2**20
STUBBORN = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
time.sleep(600)
"""
NAPS = """
import faulthandler, os, signal, time
path = f"{os.environ['NIGHTLAB_STACK_FILE']}.{os.getpid()}"
faulthandler.register(signal.SIGUSR2, file=open(path, "w"), all_threads=True)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
def waits_for_the_other_ranks():
    time.sleep(600)
print("step 1", flush=True)
waits_for_the_other_ranks()
"""


@contextmanager
def served(home: Path, **settings: object) -> Iterator[tuple[ThreadedServer, RuntimeClient]]:
    defaults = {"low_disk_bytes": 0, "devices": "cpu:1", "policy": Policy(retry_backoff_s=0.1)}
    config = ServerConfig(home=home, port=0, **{**defaults, **settings})  # type: ignore[arg-type]
    try:
        with threaded_server(config) as server, server.client() as client:
            yield server, client
    finally:
        end_leftovers(home)


def python(script: str, **fields: object) -> JobSpec:
    given = {"experiment_name": "real", "command": (sys.executable, "-c", script), "grace_seconds": 0.5, **fields}
    return JobSpec.model_validate(given)


def seen(client: RuntimeClient, job_id: str, condition: Callable[[JobView], bool]) -> JobView:
    return until(lambda: (condition(view := client.job(job_id)) and view) or None, timeout_s=30)


def printed(client: RuntimeClient, job_id: str, text: str, attempt: int | None = None) -> bool:
    return bool(client.job(job_id).attempts) and text in client.logs(job_id, attempt=attempt).text


def test_a_preempted_job_that_had_to_be_killed_is_preempted_once_and_never_failed(tmp_path: Path) -> None:
    with served(tmp_path) as (_, client):
        victim = client.submit(python(STUBBORN, priority_class="exploratory"))
        until(lambda: printed(client, victim.job_id, "ready"), timeout_s=20)
        urgent = client.submit(python("print('urgent')", priority_class="critical"))
        assert client.await_end(urgent.job_id, timeout_s=30).state == "succeeded"
        back = seen(client, victim.job_id, lambda view: len(view.attempts) == 2)
        first = back.attempts[0]
        assert (first.outcome, first.exit_reason, back.n_retries) == ("preempted", "preempted", 0)
        events = [event for event in client.events(since=0, wait_s=0.2) if event.job_id == victim.job_id]
        ends = [event.data["outcome"] for event in events if event.type == "attempt_ended"]
        assert ends == ["preempted"]
        client.cancel(victim.job_id)
        client.await_end(victim.job_id, timeout_s=20)


def test_each_attempt_keeps_its_own_output(tmp_path: Path) -> None:
    script = "import os, sys; n = os.environ['NIGHTLAB_ATTEMPT']; print('attempt', n); sys.exit(n == '1')"
    with served(tmp_path) as (_, client):
        job = client.submit(python(script, max_retries=1))
        assert client.await_end(job.job_id, timeout_s=30).state == "succeeded"
        assert [client.logs(job.job_id, attempt=n).text for n in (1, 2)] == ["attempt 1\n", "attempt 2\n"]


def test_a_hang_that_ignores_signals_is_ended_and_its_stacks_are_kept(tmp_path: Path) -> None:
    with served(tmp_path, hang_look_s=0.1) as (_, client):
        job = client.submit(python(NAPS, hang_minutes=1.0 / 60))
        ended = client.await_end(job.job_id, timeout_s=30)
        assert (ended.state, ended.exit_reason) == ("failed", "hung")
        assert "waits_for_the_other_ranks" in (tmp_path / "attempts" / job.job_id / "1" / "stacks.txt").read_text()


def test_a_stopped_process_is_ended_as_hung(tmp_path: Path) -> None:
    with served(tmp_path, hang_look_s=0.1) as (_, client):
        job = client.submit(python("import os, signal; os.kill(os.getpid(), signal.SIGSTOP)", hang_minutes=1.0 / 60))
        assert client.await_end(job.job_id, timeout_s=30).exit_reason == "hung"
        assert "stopped" in (tmp_path / "attempts" / job.job_id / "1" / "stacks.txt").read_text()


def test_a_rank_that_is_killed_is_the_cause_and_not_its_peers(tmp_path: Path) -> None:
    script = """
import os, signal, subprocess, sys
rank = "import os, signal, sys; sys.argv[1] == '1' and os.kill(os.getpid(), 9); sys.exit('ConnectionResetError: x')"
def start(n):
    log = open(f"{os.environ['NIGHTLAB_RANK_LOG_DIR']}/rank_{n}.log", "w")
    return subprocess.Popen((sys.executable, "-c", rank, str(n)), stderr=log)
ranks = [start(0), start(1)]
codes = [each.wait() for each in ranks]
print("Root Cause (first observed failure):\\n[0]:\\n  rank      : 1 (local_rank: 1)\\n  exitcode  : -9 (pid: 7)")
sys.exit(1)
"""
    with served(tmp_path, devices="cpu:2") as (_, client):
        job = client.submit(python(script, compute={"num_accelerators": 2}))
        ended = client.await_end(job.job_id, timeout_s=30)
        assert ended.exit_reason == "killed_by_signal"
        assert (ended.attempts[0].evidence or "").startswith("rank 1: killed by signal 9")


@pytest.mark.parametrize("jump_s", [86400.0, -86400.0])
def test_a_jump_of_the_wall_clock_is_no_hang(tmp_path: Path, jump_s: float) -> None:
    offset = [0.0]
    config = ServerConfig(home=tmp_path, port=0, low_disk_bytes=0, devices="cpu:1", hang_look_s=0.05)
    try:
        with threaded_server(config, clock=lambda: time.time() + offset[0]) as server, server.client() as client:
            job = client.submit(python("import time; print('ready', flush=True); time.sleep(600)", hang_minutes=5.0))
            until(lambda: printed(client, job.job_id, "ready"), timeout_s=20)
            offset[0] = jump_s
            began = time.monotonic()
            until(lambda: time.monotonic() - began > 1.0)
            assert client.job(job.job_id).state == "running"
            client.cancel(job.job_id)
            client.await_end(job.job_id, timeout_s=20)
    finally:
        end_leftovers(tmp_path)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    mount = shutil.which("mount")
    if mount is None or os.geteuid() != 0:
        pytest.skip("a small file system takes root to mount")
    done = subprocess.run((mount, "-t", "tmpfs", "-o", "size=48m", "tmpfs", place), capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"no small file system can be mounted here: {done.stderr.decode().strip()}")
    try:
        yield place
    finally:
        subprocess.run(("umount", "-l", place), check=False)


def test_low_space_stops_new_starts_with_a_reason_and_loses_nothing(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 30 * MIB)
    with served(small_disk / "home", low_disk_bytes=24 * MIB) as (server, client):
        server.services.disk.recheck_s = 0.05
        waiting = client.submit(python("print('now')"))

        def told() -> str | None:
            summary = client.explain(waiting.job_id).summary
            return summary if "low disk" in summary else None

        summary = until(told)
        assert "nothing is started until space is freed" in summary
        assert client.job(waiting.job_id).attempts == ()
        assert any("low disk" in notice for notice in client.info().notices)
        ballast.unlink()
        assert client.await_end(waiting.job_id, timeout_s=30).state == "succeeded"


def test_a_disk_that_is_full_to_the_last_byte_loses_nothing_that_was_acknowledged(
    small_disk: Path, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    script = f"import os, time\nprint('ready', flush=True)\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.05)"
    with served(small_disk / "home", devices="cpu:2") as (server, client):
        server.services.disk.recheck_s = 0.05
        running = client.submit(python(script))
        until(lambda: printed(client, running.job_id, "ready"), timeout_s=20)
        ballast = small_disk / "ballast"
        with ballast.open("wb", buffering=0) as file:
            try:
                while file.write(b"x" * 4096):
                    continue
            except OSError:
                pass
        acknowledged = [running.job_id]
        refusals: list[RuntimeClientError] = []
        for _ in range(5):
            try:
                acknowledged.append(client.submit(python("print('later')")).job_id)
            except RuntimeClientError as error:
                refusals.append(error)
        assert all(refusal.retryable for refusal in refusals)
        gate.touch()  # the running job ends while nothing can be written
        folder = small_disk / "home" / "attempts" / running.job_id / "1"
        until(lambda: (folder / "exit.json").exists(), timeout_s=20)
        ballast.unlink()
        for job_id in acknowledged:
            assert client.await_end(job_id, timeout_s=60).state in ("succeeded", "failed")
        first = client.job(running.job_id)
        assert (first.state, len(first.attempts)) == ("succeeded", 1)


def test_how_long_an_attempt_ran_is_what_its_own_machine_says(tmp_path: Path) -> None:
    with served(tmp_path) as (_, client):
        running = client.submit(python("import time; time.sleep(0.4)"))
        folder = tmp_path / "attempts" / running.job_id / "1"
        ended = client.await_end(running.job_id, timeout_s=30)
    (attempt,) = ended.attempts
    assert attempt.run_s is not None
    assert attempt.run_s >= 0.4
    assert attempt.run_s == json.loads((folder / "exit.json").read_bytes())["run_s"]


def test_the_most_memory_that_an_attempt_held_is_told_of_one_process_and_of_several(tmp_path: Path) -> None:
    alone = "held = bytearray(150 << 20); del held"
    several = (
        "import os, time\nchildren = [os.fork() for _ in range(2)]\nheld = bytearray(100 << 20)\ntime.sleep(1.5)\n"
        "if all(children):\n  [os.waitpid(child, 0) for child in children]"
    )
    with served(tmp_path) as (_, client):
        for script, least, most in ((alone, 150, 200), (several, 300, 500)):
            ended = client.await_end(client.submit(python(script)).job_id, timeout_s=30)
            assert ended.state == "succeeded"
            peak = ended.attempts[0].peak_memory_mb
            assert peak is not None
            assert least <= peak < most
        (told,) = [each for each in client.events(since=0, wait_s=0.2) if each.type == "attempt_ended"][:1]
        assert told.data["peak_memory_mb"] == client.job("j1").attempts[0].peak_memory_mb


def test_the_processor_time_of_an_attempt_is_that_of_all_its_processes(tmp_path: Path) -> None:
    burn = "import time; b = time.process_time()\nwhile time.process_time() - b < 0.4: pass"
    forks = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {burn!r}]); {burn}"
    with served(tmp_path) as (_, client):
        busy, idle = client.submit(python(forks)), client.submit(python("import time; time.sleep(1.5)"))
        spent = [client.await_end(job.job_id, timeout_s=30).attempts[0].cpu_s for job in (busy, idle)]
    assert spent[0] is not None
    assert spent[1] is not None
    assert spent[0] >= 0.8
    assert spent[1] < 0.8
