"""The runs of many new jobs in a handful of statements. Writes what `runs.record_new_job` writes; a test compares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from runtime.store import records
from runtime.store.records import OutboxRow, RunRow
from runtime.store.tables import run_params, run_tags
from runtime_client.models import JobSpec

from . import experiments
from .recording import NAME_TAG, PARENT_TAG
from .requests import MAX_PARAMS_OR_TAGS
from .runs import _job_tags, _params

STATUS = "SCHEDULED"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJobRun:
    run_id: str
    job_id: str
    spec: JobSpec


def record_new_jobs(
    connection: sa.Connection, jobs: Sequence[NewJobRun], *, now_s: float, user: str | None = None
) -> None:
    """Make the run of each job, with its parameters and tags; their status is SCHEDULED."""
    if not jobs:
        return
    for name in dict.fromkeys(job.spec.experiment_name for job in jobs):
        experiments.register(connection, name)
    tags = {job.run_id: _first_tags(job, user) for job in jobs}
    params = {job.run_id: _params(job.spec) for job in jobs}
    records.insert_runs(connection, [_row(job, now_s) for job in jobs])
    _insert_pairs(connection, run_tags, tags)
    _insert_pairs(connection, run_params, params)
    told = [row for job in jobs for row in _told(job.run_id, tags[job.run_id], params[job.run_id])]
    records.push_outbox(connection, told)


def _row(job: NewJobRun, now_s: float) -> RunRow:
    return RunRow(
        run_id=job.run_id,
        job_id=job.job_id,
        parent_run_id=job.spec.mlflow_parent_run_id,
        experiment_name=job.spec.experiment_name,
        run_name=_name(job),
        status=STATUS,
        created_at=now_s,
    )


def _name(job: NewJobRun) -> str:
    return job.spec.mlflow_run_name or job.job_id


def _first_tags(job: NewJobRun, user: str | None) -> dict[str, str]:
    tags = _job_tags(job.job_id, job.spec, user) | {"nightlab.run_id": job.run_id, NAME_TAG: _name(job)}
    if job.spec.mlflow_parent_run_id is not None:
        tags[PARENT_TAG] = job.spec.mlflow_parent_run_id
    return tags


def _insert_pairs(connection: sa.Connection, table: sa.Table, pairs_by_run: Mapping[str, Mapping[str, str]]) -> None:
    values = [
        {"run_id": run_id, "key": key, "value": value}
        for run_id, pairs in pairs_by_run.items()
        for key, value in pairs.items()
    ]
    if values:
        connection.execute(sa.insert(table), values)


def _told(run_id: str, tags: Mapping[str, str], params: Mapping[str, str]) -> list[OutboxRow]:
    """What MLflow must hear about a new run, in order."""
    items = list(params.items())
    pieces = [dict(items[start : start + MAX_PARAMS_OR_TAGS]) for start in range(0, len(items), MAX_PARAMS_OR_TAGS)]
    return [
        OutboxRow(run_id=run_id, kind="create", payload={"tags": dict(tags)}),
        *(OutboxRow(run_id=run_id, kind="log", payload={"p": piece}) for piece in pieces),
        OutboxRow(run_id=run_id, kind="status", payload={"status": STATUS, "end_ms": None}),
    ]
