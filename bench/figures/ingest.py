"""Figures of the metrics gateway."""

from __future__ import annotations

import json
import sys

from bench.figure import Figure, median_of, quartiles
from bench.server import running_server
from runtime_client.models import JobSpec

JOB = """
import json, os, sys, time
import httpx
n = int(sys.argv[1])
headers = {"Authorization": "Bearer " + os.environ["MLFLOW_TRACKING_TOKEN"]}
with httpx.Client(base_url=os.environ["MLFLOW_TRACKING_URI"], headers=headers) as http:
    run = http.post("/api/2.0/mlflow/runs/create", json={"experiment_id": "0"}).raise_for_status().json()
    run_id = run["run"]["info"]["run_id"]
    for step in range(n):
        metrics = [{"key": f"m{k}", "value": step / (k + 1), "step": step, "timestamp": int(time.time() * 1000)}
                   for k in range(10)]
        began = time.perf_counter()
        http.post("/api/2.0/mlflow/runs/log-batch", json={"run_id": run_id, "metrics": metrics}).raise_for_status()
        print(json.dumps((time.perf_counter() - began) * 1000))
"""


def log_ms(quick: bool) -> Figure:
    """One `log_batch` of 10 metrics from inside a job, over a kept connection."""
    n = 200 if quick else 1000
    with running_server("cpu:2") as (client, _):
        job = client.submit(JobSpec(experiment_name="bench", command=(sys.executable, "-c", JOB, str(n))))
        ended = client.await_end(job.job_id, timeout_s=120)
        text = client.logs(job.job_id).text
        if ended.state != "succeeded":
            raise RuntimeError(text)
        stored = len(client.metrics(job.job_id))
    samples = [json.loads(line) for line in text.splitlines()][10:]
    if stored != n * 10:
        raise RuntimeError(f"{stored} points stored of {n * 10} sent")
    return Figure(
        id="ingest.log_ms",
        value=median_of(samples),
        unit="ms",
        control=None,
        n=len(samples),
        spread=quartiles(samples),
        note="durable when answered; spread: quartiles",
    )
