"""Alibaba's 2023 GPU cluster ("openb"), one pod a row: `openb_pod_list_default.csv` and its siblings.

Source: https://github.com/alibaba/clusterdata, cluster-trace-gpu-v2023. Times are seconds from the trace's start.
The scheduler gives out whole devices, so a pod that asks for a share of one gets one.
It names no users: pods that ask for exactly the same are taken to be of one experiment.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from runtime.simulator.tables import Row, read_table
from runtime.simulator.workload import Skipped, TraceJob

COLUMNS = (
    "name",
    "num_gpu",
    "gpu_milli",
    "gpu_spec",
    "qos",
    "creation_time",
    "deletion_time",
    "scheduled_time",
)
CLASSES = {"LS": "critical", "Guaranteed": "critical", "Burstable": "normal", "BE": "exploratory"}
"""Latency-sensitive before best-effort, as the cluster's own quality-of-service classes have it."""
WHOLE_DEVICE = 1000


def read(path: Path, skipped: Skipped) -> Iterator[TraceJob]:
    """
    Raises:
        BadTrace: another layout, or a broken row.
    """
    for row in read_table(path, needs=COLUMNS, what="a pod list of openb").rows():
        why = _unusable(row)
        if why is not None:
            skipped.skip(why)
            continue
        if row.whole("num_gpu") == 1 and row.whole("gpu_milli") < WHOLE_DEVICE:
            skipped.simplify("asked for a share of a device and get a whole one")
        created_s, scheduled_s = row.number("creation_time"), row.number("scheduled_time")
        yield TraceJob(
            job_id=row.text("name"),
            submitted_at_s=created_s,
            run_s=row.number("deletion_time") - scheduled_s,
            n_devices=row.whole("num_gpu"),
            accelerator=row.text("gpu_spec") or None,
            priority_class=CLASSES.get(row.text("qos"), row.text("qos")),
            recorded_wait_s=max(0.0, scheduled_s - created_s),
            experiment=_experiment(row),
        )


def _experiment(row: Row) -> str:
    asked = (row.text(name) for name in ("qos", "cpu_milli", "memory_mib", "gpu_milli") if name in row.values)
    return " ".join(asked)


def _unusable(row: Row) -> str | None:
    if row.whole("num_gpu") < 1:
        return "asks for no device"
    if not row.text("scheduled_time"):
        return "was never placed, so its run time is not known"
    if not row.text("deletion_time"):
        return "had not ended when the trace did"
    if row.number("deletion_time") <= row.number("scheduled_time"):
        return "did not run"
    if "|" in row.text("gpu_spec"):
        return "asks for one of several kinds of device"
    return None
