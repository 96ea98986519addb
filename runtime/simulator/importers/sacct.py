"""Slurm's accounting as `sacct` prints it with `-P` (columns separated by `|`).

    sacct -a -P -X -S 2026-01-01 -E 2026-02-01 \\
      --format=JobID,JobName,User,Submit,Start,End,State,ReqTRES,AllocTRES,NNodes,Account,Partition,QOS

Source: https://slurm.schedmd.com/sacct.html (job accounting fields). Devices are the `gres/gpu` of AllocTRES, else of
ReqTRES. The priority class is the QOS where there is one, else the partition; rename them with `--classes`.
Jobs of one user and name, apart from numbers at its end, are of one experiment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from runtime.simulator.instants import parse_instant
from runtime.simulator.tables import Row, read_table
from runtime.simulator.workload import Skipped, TraceJob

COLUMNS = ("JobID", "Submit", "Start", "End")
_GPUS = re.compile(r"gres/gpu(?::(?P<kind>[^=,]+))?=(?P<n>\d+)")
_COUNTED = re.compile(r"[-_. ]*\d+$")
_NEVER = frozenset({"", "Unknown", "None", "N/A"})


def read(path: Path, skipped: Skipped) -> Iterator[TraceJob]:
    """
    Raises:
        BadTrace: no output of `sacct -P`, needed columns are missing, or a broken row.
    """
    table = read_table(path, needs=COLUMNS, delimiter="|", what="the output of `sacct -P`")
    if not {"AllocTRES", "ReqTRES"} & set(table.columns):
        read_table(path, needs=("AllocTRES",), delimiter="|", what="enough: ask sacct for --format=...,AllocTRES")
    seen: dict[str, int] = {}
    for row in table.rows():
        job_id = row.text("JobID")
        if "." in job_id:
            continue  # a step of a job that has a row of its own
        n_devices, kind = _devices(row)
        why = _unusable(row, n_devices)
        if why is not None:
            skipped.skip(why)
            continue
        start_s, end_s = parse_instant(row.text("Start"), row), parse_instant(row.text("End"), row)
        submit_s = parse_instant(row.text("Submit"), row)
        if end_s <= start_s:
            skipped.skip("did not run")
            continue
        seen[job_id] = seen.get(job_id, 0) + 1  # a requeued job has a row for each time it ran
        yield TraceJob(
            job_id=job_id if seen[job_id] == 1 else f"{job_id}#{seen[job_id]}",
            submitted_at_s=submit_s,
            run_s=end_s - start_s,
            n_devices=n_devices,
            devices_per_node=_per_node(row, n_devices),
            accelerator=kind,
            priority_class=row.text("QOS") or row.text("Partition") or "normal",
            project=row.text("Account") or "default",
            experiment=_experiment(row, table.columns),
            recorded_wait_s=max(0.0, start_s - submit_s),
        )


def _experiment(row: Row, columns: Sequence[str]) -> str:
    user, name = (row.text(column) if column in columns else "" for column in ("User", "JobName"))
    return f"{user}/{_COUNTED.sub('', name)}" if user or name else ""


def _devices(row: Row) -> tuple[int, str | None]:
    """How many devices, and of which kind where Slurm was told one."""
    found = [match for column in ("AllocTRES", "ReqTRES") for match in _GPUS.finditer(row.text(column))]
    total = next((int(match["n"]) for match in found if match["kind"] is None), None)
    typed = next((match for match in found if match["kind"] is not None), None)
    if typed is not None:
        return (int(typed["n"]) if total is None else total), typed["kind"]
    return total or 0, None


def _per_node(row: Row, n_devices: int) -> int | None:
    """Equal parts where Slurm spread the job evenly; None: not known."""
    text = row.text("NNodes")
    n_nodes = int(text) if text.isdecimal() else 0
    return n_devices // n_nodes if n_nodes and n_devices % n_nodes == 0 else None


def _unusable(row: Row, n_devices: int) -> str | None:
    if n_devices < 1:
        return "asks for no device"
    if row.text("Start") in _NEVER:
        return "never started"
    if row.text("End") in _NEVER:
        return "had not ended yet"
    return None
