"""Microsoft's Philly jobs as one flat table: `timestamp,duration,num_gpus,gpu_time,cluster`.

Source: https://github.com/msr-fiddle/philly-traces, flattened in petuum/adaptdl (branch osdi21-artifact).
Times are local and taken as they stand; there are no priorities, nodes or queue times in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from runtime.simulator.instants import parse_instant
from runtime.simulator.tables import read_table
from runtime.simulator.workload import Skipped, TraceJob

COLUMNS = ("timestamp", "duration", "num_gpus", "cluster")


def read(path: Path, skipped: Skipped) -> Iterator[TraceJob]:
    """
    Raises:
        BadTrace: another layout, or a broken row.
    """
    for n, row in enumerate(read_table(path, needs=COLUMNS, what="the flat Philly table").rows(), start=1):
        n_devices, run_s = row.whole("num_gpus"), row.number("duration")
        if n_devices < 1 or run_s <= 0:
            skipped.skip("asks for no device or did not run")
            continue
        yield TraceJob(
            job_id=f"j{n}",
            submitted_at_s=parse_instant(row.text("timestamp"), row),
            run_s=run_s,
            n_devices=n_devices,
            project=row.text("cluster") or "default",
        )
