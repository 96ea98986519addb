"""Figures of starting: from the submission to the first line of user code, and how many a second."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from bench.figure import Figure, median_of, quartiles
from bench.server import running_server
from runtime_client.client import RuntimeClient
from runtime_client.models import JobSpec

FIRST_LINE = "import time; t = time.time(); import sys; open(sys.argv[1], 'w').write(repr(t))"


def cold_ratio(quick: bool) -> Figure:
    """Submit to the first line of the job's Python, over Popen of the same command, interleaved run by run."""
    n = 30 if quick else 150
    with running_server("cpu:2") as (client, _), tempfile.TemporaryDirectory() as folder:
        ours, floors = [], []
        for i in range(n + 3):
            ours.append(_submitted(client, Path(folder) / f"a{i}"))
            floors.append(_popen(Path(folder) / f"b{i}"))
    ours, floors = ours[3:], floors[3:]
    ratios = [a / b for a, b in zip(ours, floors, strict=True)]
    floor = median_of(floors)
    return Figure(
        id="start.cold_ratio",
        value=median_of(ours) / floor,
        unit="ratio",
        control=1.0,
        n=n,
        spread=quartiles(ratios),
        note=f"p50 {median_of(ours) * 1000:.1f} ms over Popen {floor * 1000:.1f} ms; spread: quartiles of the pairs",
    )


def _command(out: Path) -> tuple[str, ...]:
    return (sys.executable, "-c", FIRST_LINE, str(out))


def _submitted(client: RuntimeClient, out: Path) -> float:
    spec = JobSpec(experiment_name="bench", command=_command(out))
    began = time.time()
    job = client.submit(spec)
    client.await_end(job.job_id, timeout_s=30)
    return float(out.read_text()) - began


def _popen(out: Path) -> float:
    began = time.time()
    subprocess.Popen(_command(out)).wait()
    return float(out.read_text()) - began


def throughput(quick: bool) -> Figure:
    """`/bin/true` jobs a second, submitted in one go, until the last has ended."""
    n = 300 if quick else 2000
    with running_server("cpu:2") as (client, _):
        spec = JobSpec(experiment_name="bench", command=("/bin/true",))
        began = time.perf_counter()
        last = ""
        for first in range(0, n, 100):
            results = client.submit_many([spec] * min(100, n - first))
            last = [r.job.job_id for r in results if r.job][-1]
        client.await_end(last, timeout_s=300)
        while client.info().n_queued or client.info().n_running:
            time.sleep(0.01)
        elapsed = time.perf_counter() - began
    return Figure(
        id="start.throughput",
        value=n / elapsed,
        unit="jobs/s",
        control=None,
        n=n,
        spread=(n / elapsed, n / elapsed),
        note="durable, end to end, two slots; one run",
    )


def submits(quick: bool) -> Figure:
    """Durable single submissions a second from eight clients."""
    per_client = 50 if quick else 250
    with running_server("cpu:1") as (client, home):
        client.submit(JobSpec(experiment_name="bench", command=("sleep", "600")))
        spec = JobSpec(experiment_name="bench", command=("/bin/true",))

        def one_client() -> None:
            own = RuntimeClient.from_home(home)
            for _ in range(per_client):
                own.submit(spec)

        elapsed = _in_threads(8, one_client)
    total = 8 * per_client
    return Figure(
        id="start.submits",
        value=total / elapsed,
        unit="jobs/s",
        control=None,
        n=total,
        spread=(total / elapsed, total / elapsed),
        note="8 clients, threads of one process; one run",
    )


def submits_batch(quick: bool) -> Figure:
    """Jobs a second by batches of 100, each job with its own idempotency key and result."""
    batches = 20 if quick else 100
    with running_server("cpu:1") as (client, _):
        client.submit(JobSpec(experiment_name="bench", command=("sleep", "600")))
        samples = []
        for b in range(batches):
            specs = [
                JobSpec(experiment_name="bench", command=("/bin/true",), idempotency_token=f"b{b}-{i}")
                for i in range(100)
            ]
            began = time.perf_counter()
            results = client.submit_many(specs)
            samples.append(100 / (time.perf_counter() - began))
            if not all(r.job for r in results):
                raise RuntimeError("a submission was refused")
    return Figure(
        id="start.submits_batch",
        value=median_of(samples),
        unit="jobs/s",
        control=None,
        n=batches,
        spread=quartiles(samples),
        note="one client, making the specs not counted; spread: quartiles of the batches",
    )


def _in_threads(n: int, work: Callable[[], None]) -> float:
    threads = [threading.Thread(target=work) for _ in range(n)]
    began = time.perf_counter()
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return time.perf_counter() - began
