"""Figures of attempts and the server beside them: giving way, killing, adopting, and doing nothing."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil

from bench.figure import Figure, median_of, quartiles
from bench.server import homed_server, running_server
from runtime.engines.contract import AttemptKey
from runtime.engines.device_watch import DeviceWatch, Looks
from runtime.engines.preparation import Prepared
from runtime.engines.watched import Watched
from runtime.node.device_locks import device_locks_for
from runtime.node.device_probe import PRETENDED_VARIABLE, probe_for
from runtime.node.devices import find_devices
from runtime_client.client import RuntimeClient
from runtime_client.models import JobSpec

VICTIM = """
import os, signal, sys, time
def leave(*_):
    began = time.time()
    folder = os.path.join(os.environ["NIGHTLAB_CHECKPOINT_DIR"], "step-" + os.environ["NIGHTLAB_ATTEMPT"])
    os.makedirs(folder)
    time.sleep(0.1)
    open(os.path.join(folder, "COMPLETE"), "w").close()
    with open(sys.argv[1], "w") as file: file.write(repr(time.time() - began))
    os._exit(75)
signal.signal(signal.SIGTERM, leave)
open(sys.argv[2], "a").write(".")
while True: time.sleep(60)
"""
URGENT = "import time; t = time.time(); import sys; open(sys.argv[1], 'w').write(repr(t))"
STUBBORN = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
def note():
    with open(sys.argv[1], "a") as file: file.write(f"{os.getpid()}\\n")
for i in range(50):
    if os.fork() == 0:
        if i % 3 == 1: os.setsid()
        if i % 3 == 2:
            if os.fork(): os._exit(0)
            os.setsid()
        note()
        while True: time.sleep(60)
note()
while True: time.sleep(60)
"""
GRACE_S = 0.5
N_RUNNING = 200
N_FINISHED = 10_000


def preempt_latency_s(quick: bool) -> Figure:
    """From submitting an urgent job to its first line, on the one device that a lower job holds."""
    n = 15 if quick else 60
    samples = []
    with running_server("fake:1xH100") as (client, _), tempfile.TemporaryDirectory() as folder:
        took, up, said = Path(folder) / "took", Path(folder) / "up", Path(folder) / "said"
        victim = (sys.executable, "-S", "-c", VICTIM, str(took), str(up))
        client.submit(JobSpec(experiment_name="bench", command=victim, priority_class="exploratory"))
        for i in range(n + 2):
            _until(lambda i=i: up.exists() and up.stat().st_size == i + 1)
            said.unlink(missing_ok=True)
            began = time.time()
            urgent = (sys.executable, "-S", "-c", URGENT, str(said))
            job = client.submit(JobSpec(experiment_name="bench", command=urgent, priority_class="critical"))
            client.await_end(job.job_id, timeout_s=30)
            samples.append(float(said.read_text()) - began - float(took.read_text()))
    samples = samples[2:]
    return Figure(
        id="preempt.latency_s",
        value=median_of(samples),
        unit="s",
        control=None,
        n=n,
        spread=quartiles(samples),
        note="less the victim's checkpoint of 0.1 s; Python without site packages; spread: quartiles",
    )


def kill_seconds(quick: bool) -> Figure:
    """From the order to kill a tree that hides and ignores SIGTERM until its job is over and nothing of it is left."""
    n = 5 if quick else 20
    samples = []
    with running_server("fake:1xH100") as (client, _), tempfile.TemporaryDirectory() as folder:
        for i in range(n):
            listed = Path(folder) / f"pids{i}"
            command = (sys.executable, "-S", "-c", STUBBORN, str(listed))
            job = client.submit(JobSpec(experiment_name="bench", command=command, grace_seconds=GRACE_S))
            _until(lambda listed=listed: listed.exists() and len(listed.read_text().split()) == 51)
            pids = [int(pid) for pid in listed.read_text().split()]
            began = time.perf_counter()
            client.cancel(job.job_id)
            client.await_end(job.job_id, timeout_s=60)
            samples.append(time.perf_counter() - began)
            alive = [pid for pid in pids if psutil.pid_exists(pid)]
            if alive:
                raise RuntimeError(f"{len(alive)} processes are still there")
    return Figure(
        id="kill.seconds",
        value=median_of(samples),
        unit="s",
        control=GRACE_S,
        n=n,
        spread=(min(samples), max(samples)),
        note="51 processes, a third in sessions of their own, a third forked twice; control: the grace in it",
    )


def adopt_seconds(quick: bool) -> Figure:
    """From starting a server after `kill -9` until it answers, which it does when all attempts are adopted."""
    n_finished, n = (2_000, 3) if quick else (N_FINISHED, 5)
    samples = []
    with homed_server(f"fake:{N_RUNNING}xH100") as server:
        client = server.start()
        client.submit_many([JobSpec(experiment_name="bench", command=("sleep", "100000"))] * N_RUNNING)
        _until(lambda: len(_sleepers(server.home)) == N_RUNNING)
        pids = _sleepers(server.home)
        _finish_many(client, server.home, n_finished)
        for _ in range(n):
            server.kill()
            began = time.perf_counter()
            client = server.start()
            samples.append(time.perf_counter() - began)
            info = client.info()
            if (info.n_running, _sleepers(server.home)) != (N_RUNNING, pids):
                raise RuntimeError(f"not all were adopted as they were: {info.n_running} run")
    return Figure(
        id="adopt.seconds",
        value=median_of(samples),
        unit="s",
        control=None,
        n=n,
        spread=(min(samples), max(samples)),
        note=f"{N_RUNNING} attempts, {n_finished:,} finished jobs; the start of Python is in it",
    )


def idle_cpu_percent(quick: bool) -> Figure:
    """Processor time of a server that has nothing to do, of one core."""
    return _idle(quick, "idle.cpu_percent", "%", lambda spent_s, for_s, rss: 100 * spent_s / for_s)


def idle_rss_mb(quick: bool) -> Figure:
    """Resident memory of a server that has nothing to do."""
    return _idle(quick, "idle.rss_mb", "MB", lambda spent_s, for_s, rss: rss / 1e6)


def level0_ms(quick: bool) -> Figure:
    """The check of an attempt's devices before it starts, on a node of eight pretended devices, all of them in use."""
    n = 200 if quick else 2000
    with tempfile.TemporaryDirectory() as folder:
        samples = asyncio.run(_checks(Path(folder), n))
    return Figure(
        id="health.level0_ms",
        value=median_of(samples),
        unit="ms",
        control=None,
        n=n,
        spread=quartiles(samples),
        note="8 devices played by a folder, one process on each; NVML's own time is not in it; spread: quartiles",
    )


async def _checks(folder: Path, n: int) -> list[float]:
    devices = find_devices("fake:8xH100", {})
    for device in devices:
        (folder / device.uuid).mkdir()
        (folder / device.uuid / str(os.getpid())).write_text("1000")
    environ = {PRETENDED_VARIABLE: str(folder)}
    prepared = Prepared(folder=folder, checkpoint_dir=folder, marker="bench", readers=[])
    key = AttemptKey(job_id="j1", attempt=1)
    watched = Watched(key=key, generation=1, prepared=prepared, devices=tuple(range(8)))
    watch = DeviceWatch(
        node_id="local",
        devices=devices,
        probe=probe_for(devices, environ),
        locks=device_locks_for(devices, environ),
        attempts=lambda: (),
        say=lambda report: None,
        looks=Looks(),
    )
    samples = []
    for _ in range(n):
        began = time.perf_counter()
        if await watch.refusal(watched) is None:
            raise RuntimeError("a device that is in use was taken for free")
        samples.append(1000 * (time.perf_counter() - began))
    return samples


def _idle(quick: bool, figure_id: str, unit: str, value_of: Callable[[float, float, int], float]) -> Figure:
    n, for_s = (3, 8.0) if quick else (6, 20.0)
    samples = []
    with homed_server("cpu:2") as server:
        client = server.start()
        job = client.submit(JobSpec(experiment_name="bench", command="true"))
        client.await_end(job.job_id, timeout_s=30)
        process = psutil.Process(server.pid)
        time.sleep(2.0)
        for _ in range(n):
            before, began = _spent_s(process), time.perf_counter()
            time.sleep(for_s)
            samples.append(value_of(_spent_s(process) - before, time.perf_counter() - began, process.memory_info().rss))
    note = f"the server alone, no MLflow, after one job; each of {n} over {for_s:g} s"
    return Figure(
        id=figure_id,
        value=median_of(samples),
        unit=unit,
        control=None,
        n=n,
        spread=(min(samples), max(samples)),
        note=note,
    )


def _spent_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _finish_many(client: RuntimeClient, home: Path, n: int) -> None:
    """Jobs that wait behind the running ones, and are cancelled."""
    ids: list[str] = []
    for first in range(0, n, 100):
        specs = [JobSpec(experiment_name="bench", command=("/bin/true",))] * min(100, n - first)
        ids += [result.job.job_id for result in client.submit_many(specs) if result.job]

    def cancel(some: list[str]) -> None:
        own = RuntimeClient.from_home(home)
        for job_id in some:
            own.cancel(job_id)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(cancel, [ids[i::8] for i in range(8)]))


def _sleepers(home: Path) -> set[int]:
    found = set()
    for process in psutil.process_iter(["name"]):
        if process.info["name"] == "sleep":
            try:
                is_ours = process.environ().get("NIGHTLAB_CHECKPOINT_DIR", "").startswith(str(home) + os.sep)
            except psutil.Error:
                continue
            if is_ours:
                found.add(process.pid)
    return found


def _until(condition: Callable[[], object], *, timeout_s: float = 60.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"not within {timeout_s:g} s")
        time.sleep(0.005)
