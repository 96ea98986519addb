"""Runs as the server sees them: one for each job, and those of sessions and hypotheses. Functions of a connection.

The server calls these inside its own units of work, so that a job, its event and its run are one transaction.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from runtime.store import records
from runtime.store.records import RunRow
from runtime_client.models import JobSpec, NewRun, RunUpdate, RunView

from . import experiments, queries, recording
from .requests import MAX_KEY_LENGTH, MAX_PARAM_LENGTH, MAX_TAG_LENGTH, Point, is_good_name
from .spool import is_safe_path

_ODD = re.compile(r"[^/\w.\- :]")


class UnknownRun(Exception):
    """No run of ours has that id."""

    def __init__(self, run_id: str) -> None:
        super().__init__(f"no run {run_id!r}: give a run id of this runtime (32 hex digits)")
        self.run_id = run_id


class RunConflict(Exception):
    """The change contradicts what is recorded."""


class BadRunUpdate(Exception):
    """A value that can never be recorded."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(message)
        self.path = path


def record_new_job(
    connection: sa.Connection, *, run_id: str, job_id: str, spec: JobSpec, now_s: float, user: str | None = None
) -> None:
    """Make the run that carries a job, with its parameters and tags; its status is SCHEDULED."""
    experiments.register(connection, spec.experiment_name)
    row = RunRow(
        run_id=run_id,
        job_id=job_id,
        parent_run_id=spec.mlflow_parent_run_id,
        experiment_name=spec.experiment_name,
        run_name=spec.mlflow_run_name or job_id,
        status="SCHEDULED",
        created_at=now_s,
    )
    recording.new_run(connection, row, tags=_job_tags(job_id, spec, user), params=_params(spec))


def record_status(connection: sa.Connection, run_id: str, status: str, at_s: float) -> None:
    """Set the status of a job's run: SCHEDULED, RUNNING, FINISHED, FAILED or KILLED.

    A final one also ends the further runs that the job's script left open.

    Raises:
        UnknownRun: no such run.
    """
    row = _get(connection, run_id)
    recording.set_status(connection, row, status, at_s)
    if status in recording.FINAL and row.job_id is not None:
        for child in queries.children_of_job(connection, row.job_id):
            if child.status not in recording.FINAL:
                recording.set_status(connection, child, status, at_s)


def record_points(
    connection: sa.Connection, run_id: str, attempt: int, points: Sequence[Point], now_s: float
) -> frozenset[str]:
    """Record metrics found in a job's output; return their names, for the notice.

    A name that MLflow would not take has its odd characters replaced by `_`: the script knows no such rule. A
    time that is no finite number becomes `now_s`.
    """
    kept = [
        (_plain_name(key), float(value), int(step), at_s if math.isfinite(at_s) else now_s)
        for key, value, step, at_s in points
    ]
    recording.log(connection, run_id, attempt=attempt, points=kept, is_reread=True)
    return frozenset(key for key, *_ in kept)


def missing_or_non_finite(
    connection: sa.Connection, run_id: str, required: Iterable[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Of the required metrics: those never logged to this run, and those whose last value is NaN or infinite."""
    latest = records.latest_metrics(connection, run_id)
    names = tuple(required)
    missing = tuple(name for name in names if name not in latest)
    bad = tuple(name for name in names if name in latest and not math.isfinite(latest[name].value))
    return missing, bad


def create_run(connection: sa.Connection, new: NewRun, *, run_id: str, now_s: float) -> str:
    """Make a run that no job carries, RUNNING; return its id, which is an earlier one for a known token.

    Raises:
        UnknownRun: the parent is none of ours.
        BadRunUpdate: a tag that can not be recorded.
    """
    token = "new:" + _short(new.idempotency_token)
    known = records.run_by_token(connection, token)
    if known is not None:
        return known.run_id
    if new.parent_run_id is not None:
        _get(connection, new.parent_run_id)
    _check_pairs("tags", new.tags, MAX_TAG_LENGTH)
    experiments.register(connection, new.experiment_name)
    row = RunRow(
        run_id=run_id,
        parent_run_id=new.parent_run_id,
        experiment_name=new.experiment_name,
        run_name=new.run_name,
        status="RUNNING",
        created_at=now_s,
        idempotency_token=token,
    )
    recording.new_run(connection, row, tags=new.tags, params={})
    return run_id


def update_run(connection: sa.Connection, run_id: str, update: RunUpdate, *, now_s: float) -> None:
    """Record params, tags, metrics and a status.

    Raises:
        UnknownRun: no such run.
        RunConflict: a param has another value already, or the run's status is the runtime's (it carries a job).
        BadRunUpdate: a name or value that can not be recorded.
    """
    row = _get(connection, run_id)
    _check_pairs("params", update.params, MAX_PARAM_LENGTH)
    _check_pairs("tags", update.tags, MAX_TAG_LENGTH)
    _check_pairs("metrics", dict.fromkeys(update.metrics, ""), 0)
    if update.status is not None and update.status not in recording.STATUSES:
        allowed = ", ".join(sorted(recording.STATUSES))
        raise BadRunUpdate("status", f"status {update.status!r} is none of {allowed}")
    if update.status is not None and row.job_id is not None:
        raise RunConflict(f"run {run_id} carries job {row.job_id}: its status follows the job's")
    points = [(key, value, update.step, now_s) for key, value in update.metrics.items()]
    try:
        recording.log(
            connection,
            run_id,
            attempt=row.attempt or 0,
            points=points,
            params=update.params,
            tags=update.tags,
            own_params=update.params,
        )
    except recording.ParamChanged as changed:
        raise RunConflict(str(changed)) from changed
    if update.status is not None:
        recording.set_status(connection, row, update.status, now_s)


def record_artifact(connection: sa.Connection, run_id: str, *, path: str, file: str) -> None:
    """Queue a file of the spool as an artifact of a run.

    Raises:
        UnknownRun: no such run.
        BadRunUpdate: the path is no plain relative one.
    """
    _get(connection, run_id)
    if not is_safe_path(path):
        raise BadRunUpdate("path", f"{path!r} is no plain relative path (no `..`, no empty part)")
    recording.push(connection, run_id, "artifact", {"path": path, "file": file})


def run_view(connection: sa.Connection, run_id: str, *, mlflow_url: str | None = None) -> RunView:
    """A run with everything logged to it.

    Raises:
        UnknownRun: no such run.
    """
    row = _get(connection, run_id)
    latest = records.latest_metrics(connection, run_id)
    return RunView(
        run_id=row.run_id,
        mlflow_run_id=row.mlflow_run_id,
        mlflow_url=page_url(row, mlflow_url),
        experiment_name=row.experiment_name,
        run_name=row.run_name,
        parent_run_id=row.parent_run_id,
        status=row.status,
        params=records.get_params(connection, run_id),
        tags=records.get_tags(connection, run_id),
        latest={key: point.value if math.isfinite(point.value) else None for key, point in latest.items()},
    )


def page_url(row: RunRow, mlflow_url: str | None) -> str | None:
    """The page of a run in MLflow's web interface; None until MLflow has the run."""
    if mlflow_url is None or row.mlflow_run_id is None:
        return None
    return f"{mlflow_url.rstrip('/')}/#/experiments/{row.mlflow_experiment_id}/runs/{row.mlflow_run_id}"


def flat_params(parameters: Mapping[str, Any]) -> dict[str, str]:
    """Parameters as MLflow params: nested maps become dotted names, lists JSON, the rest as Python prints it."""
    flat: dict[str, str] = {}
    for key, value in parameters.items():
        if isinstance(value, Mapping):
            flat.update({f"{key}.{inner}": text for inner, text in flat_params(value).items()})
        elif isinstance(value, list | tuple):
            flat[key] = json.dumps(value)
        else:
            flat[key] = str(value)
    return flat


def _params(spec: JobSpec) -> dict[str, str]:
    flat = flat_params(spec.parameters)
    if spec.seed is not None:
        flat.setdefault("seed", str(spec.seed))
    return {_plain_name(key): value[:MAX_PARAM_LENGTH] for key, value in flat.items()}


def _job_tags(job_id: str, spec: JobSpec, user: str | None) -> dict[str, str]:
    command = spec.command if isinstance(spec.command, str) else shlex.join(spec.command)
    tags = {_plain_name(key): value[:MAX_TAG_LENGTH] for key, value in spec.tags.items()}
    tags |= {
        "nightlab.job_id": job_id,
        "nightlab.priority_class": spec.priority_class,
        "nightlab.project": spec.project,
        "mlflow.source.name": command[:500],
        "mlflow.source.type": "JOB",
    }
    if spec.session is not None:
        tags["nightlab.session_id"] = spec.session.session_id
    if user is not None:
        tags["mlflow.user"] = user
    return tags


def _plain_name(name: str) -> str:
    if is_good_name(name) and len(name) <= MAX_KEY_LENGTH:
        return name
    plain = _ODD.sub("_", name)[:MAX_KEY_LENGTH]
    if is_good_name(plain):
        return plain
    return plain.replace("/", "_").replace("..", "__").strip(".") or "_"


def _check_pairs(path: str, pairs: Mapping[str, str], longest: int) -> None:
    for key, value in pairs.items():
        if not is_good_name(key) or len(key) > MAX_KEY_LENGTH:
            raise BadRunUpdate(f"{path}.{key[:60]}", f"{key[:60]!r} is no name that MLflow takes")
        if len(value) > longest:
            raise BadRunUpdate(f"{path}.{key}", f"the value has {len(value)} characters; at most {longest}")


def _get(connection: sa.Connection, run_id: str) -> RunRow:
    row = records.get_run(connection, run_id)
    if row is None:
        raise UnknownRun(run_id)
    return row


def _short(token: str) -> str:
    return token if len(token) <= 150 else hashlib.sha256(token.encode()).hexdigest()
