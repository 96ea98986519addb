"""Alibaba's 2026 trace of high-priority and spot jobs: `job_info_df.csv`.

Source: https://github.com/alibaba/clusterdata, cluster-trace-v2026-spot-gpu. Times are seconds from the first
submission. A job is `worker_num` workers of `gpu_request` devices each; each worker is on one node.
It names no experiments: jobs of an organization that ask for the same are taken to be of one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from runtime.simulator.tables import read_table
from runtime.simulator.workload import Skipped, TraceJob

COLUMNS = (
    "job_name",
    "organization",
    "gpu_model",
    "gpu_request",
    "worker_num",
    "submit_time",
    "duration",
    "job_type",
)
CLASSES = {"HP": "critical", "Spot": "exploratory"}


def read(path: Path, skipped: Skipped) -> Iterator[TraceJob]:
    """
    Raises:
        BadTrace: another layout, or a broken row.
    """
    for row in read_table(path, needs=COLUMNS, what="the HP/Spot job list").rows():
        asked, n_workers, run_s = row.number("gpu_request"), row.whole("worker_num"), row.number("duration")
        if asked <= 0 or n_workers < 1 or run_s <= 0:
            skipped.skip("asks for no device or did not run")
            continue
        per_worker = math.ceil(asked)
        if per_worker != asked:
            skipped.simplify("asked for a share of a device and get a whole one")
        yield TraceJob(
            job_id=row.text("job_name"),
            submitted_at_s=row.number("submit_time"),
            run_s=run_s,
            n_devices=per_worker * n_workers,
            devices_per_node=per_worker,
            accelerator=row.text("gpu_model") or None,
            priority_class=CLASSES.get(row.text("job_type"), row.text("job_type")),
            project=row.text("organization") or "default",
            experiment=f"{row.text('job_type')} {row.text('cpu_request')} CPU",
        )
