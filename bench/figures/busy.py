"""The figure of devices kept busy: a live server with pretended devices and short trials, by what they print."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from bench.figure import Figure
from bench.server import running_server
from runtime_client.client import RuntimeClient
from runtime_client.models import JobSpec

N_DEVICES = 16
TRIAL_S = 3.0
SPAN_S = 45.0
LINES = f"""
import time
print("at", repr(time.time()), flush=True)
time.sleep({TRIAL_S})
print("at", repr(time.time()), flush=True)
"""
COMMAND = (sys.executable, "-c", LINES)
Lines = tuple[float, float]
"""When a trial printed its first and its last line."""


def busy_percent(quick: bool) -> Figure:
    """Time between the first and the last line of each trial, over devices times the span of all of them.

    More trials are queued than can run, so that a device is idle only because of us. Control: as many threads that do
    nothing but start the same command again and again.
    """
    n_rounds = int((15.0 if quick else SPAN_S) / TRIAL_S)
    ours = _ours(n_rounds * N_DEVICES)
    floor = _floor(n_rounds)
    span_s = max(last for _, last in ours) - min(first for first, _ in ours)
    gap_ms = 1000 * (span_s / n_rounds - TRIAL_S)
    return Figure(
        id="sched.busy_percent",
        value=_percent(ours),
        unit="percent",
        control=_percent(floor),
        n=len(ours),
        spread=(0.0, 0.0),
        note=f"trials of {TRIAL_S:g} s in {span_s:.1f} s; {gap_ms:.0f} ms from a last line to the next first one",
    )


def _percent(lines: Sequence[Lines]) -> float:
    span_s = max(last for _, last in lines) - min(first for first, _ in lines)
    return 100 * sum(last - first for first, last in lines) / (N_DEVICES * span_s)


def _ours(n_trials: int) -> list[Lines]:
    spec = JobSpec(experiment_name="bench", command=COMMAND)
    with running_server(f"fake:{N_DEVICES}xH100") as (client, _):
        job_ids = [result.job.job_id for result in client.submit_many([spec] * n_trials) if result.job]
        while client.info().n_queued or client.info().n_running:
            time.sleep(0.2)
        return [_lines_of_job(client, job_id) for job_id in job_ids]


def _lines_of_job(client: RuntimeClient, job_id: str) -> Lines:
    return _lines(client.logs(job_id).text)


def _floor(n_rounds: int) -> list[Lines]:
    def work(_: int) -> list[Lines]:
        done = [subprocess.run(COMMAND, capture_output=True, text=True, check=True) for _ in range(n_rounds)]
        return [_lines(one.stdout) for one in done]

    with ThreadPoolExecutor(N_DEVICES) as workers:
        return [lines for found in workers.map(work, range(N_DEVICES)) for lines in found]


def _lines(text: str) -> Lines:
    times = [float(line.split()[1]) for line in text.splitlines() if line.startswith("at ")]
    return times[0], times[-1]
