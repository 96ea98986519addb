"""MLflow runs with their parameters, tags and metrics, and what MLflow has not been told. Functions of a connection."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack

import sqlalchemy as sa

from .rows import all_values, as_values, in_chunks, insert_or_replace, load, load_all
from .tables import facts, metrics, outbox, run_params, run_tags, runs
from .writer import StoreRefused


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """One row of `runs`. Times are seconds since the epoch."""

    run_id: str
    job_id: str | None = None
    attempt: int | None = None
    """None with a `job_id`: the job's own run."""
    parent_run_id: str | None = None
    experiment_name: str
    run_name: str
    status: str
    """The server's word, in MLflow's: RUNNING, FINISHED, FAILED, KILLED, SCHEDULED."""
    reported_status: str | None = None
    """What the job's process said."""
    created_at: float
    ended_at: float | None = None
    idempotency_token: str | None = None
    mlflow_run_id: str | None = None
    mlflow_experiment_id: str | None = None


class RunChanges(TypedDict, total=False):
    """The columns of a run that change in its life."""

    run_name: str
    status: str
    reported_status: str | None
    ended_at: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricRow:
    run_id: str
    key: str
    value: float
    """NaN and infinities included."""
    step: int
    at_s: float
    attempt: int
    id: int = 0
    """In order of arrival; given by the database, 0 before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxRow:
    run_id: str
    kind: str
    payload: dict[str, Any]
    n_tries: int = 0
    error: str | None = None
    """What the last try met."""
    id: int = 0
    """In order of arrival; given by the database, 0 before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParamConflict:
    """A parameter that has a value already, and was given another."""

    key: str
    stored: str
    given: str


def insert_run(connection: sa.Connection, row: RunRow) -> None:
    connection.execute(sa.insert(runs), as_values(row))


def insert_runs(connection: sa.Connection, rows: Sequence[RunRow]) -> None:
    if rows:
        connection.execute(sa.insert(runs), all_values(rows))


def get_run(connection: sa.Connection, run_id: str) -> RunRow | None:
    return _one_run(connection, runs.c.run_id == run_id)


def run_by_token(connection: sa.Connection, token: str) -> RunRow | None:
    return _one_run(connection, runs.c.idempotency_token == token)


def run_of_job(connection: sa.Connection, job_id: str) -> RunRow | None:
    """The job's own run."""
    return _one_run(connection, runs.c.job_id == job_id, runs.c.attempt.is_(None))


def _one_run(connection: sa.Connection, *conditions: sa.ColumnElement[bool]) -> RunRow | None:
    row = connection.execute(sa.select(runs).where(*conditions)).one_or_none()
    return None if row is None else load(RunRow, row)


def runs_of_attempt(connection: sa.Connection, job_id: str, attempt: int) -> list[RunRow]:
    """The further runs that a script made in this attempt, oldest first."""
    query = sa.select(runs).where(runs.c.job_id == job_id, runs.c.attempt == attempt)
    return load_all(RunRow, connection.execute(query.order_by(runs.c.created_at, runs.c.run_id)))


def find_runs(
    connection: sa.Connection,
    *,
    experiment_name: str | None = None,
    parent_run_id: str | None = None,
    limit: int,
) -> list[RunRow]:
    """Runs, newest first."""
    query = sa.select(runs).order_by(runs.c.created_at.desc(), runs.c.run_id).limit(limit)
    if experiment_name is not None:
        query = query.where(runs.c.experiment_name == experiment_name)
    if parent_run_id is not None:
        query = query.where(runs.c.parent_run_id == parent_run_id)
    return load_all(RunRow, connection.execute(query))


def update_run(connection: sa.Connection, run_id: str, **changes: Unpack[RunChanges]) -> None:
    """Change one run.

    Raises:
        StoreRefused: no such run.
    """
    _change_run(connection, run_id, dict(changes))


def set_mlflow_ids(connection: sa.Connection, run_id: str, *, mlflow_run_id: str, mlflow_experiment_id: str) -> None:
    """Remember what MLflow calls the run."""
    _change_run(connection, run_id, {"mlflow_run_id": mlflow_run_id, "mlflow_experiment_id": mlflow_experiment_id})


def _change_run(connection: sa.Connection, run_id: str, changes: dict[str, Any]) -> None:
    if not changes:
        return
    if connection.execute(sa.update(runs).where(runs.c.run_id == run_id).values(changes)).rowcount != 1:
        raise StoreRefused(f"no such run: {run_id!r}")


def set_params(connection: sa.Connection, run_id: str, items: Mapping[str, str]) -> list[ParamConflict]:
    """Add parameters. They never change: a second, different value is reported and not kept, the others are."""
    stored: dict[str, str] = {}
    for chunk in in_chunks(items):
        query = sa.select(run_params.c.key, run_params.c.value)
        for key, value in connection.execute(query.where(run_params.c.run_id == run_id, run_params.c.key.in_(chunk))):
            stored[key] = value
    new = [{"run_id": run_id, "key": key, "value": value} for key, value in items.items() if key not in stored]
    if new:
        connection.execute(sa.insert(run_params), new)
    return [
        ParamConflict(key=key, stored=stored[key], given=value)
        for key, value in items.items()
        if stored.get(key, value) != value
    ]


def get_params(connection: sa.Connection, run_id: str) -> dict[str, str]:
    return _pairs(connection, run_params, run_id)


def set_tags(connection: sa.Connection, run_id: str, items: Mapping[str, str]) -> None:
    """Add tags; later values win."""
    values = [{"run_id": run_id, "key": key, "value": value} for key, value in items.items()]
    insert_or_replace(connection, run_tags, values)


def get_tags(connection: sa.Connection, run_id: str) -> dict[str, str]:
    return _pairs(connection, run_tags, run_id)


def _pairs(connection: sa.Connection, table: sa.Table, run_id: str) -> dict[str, str]:
    query = sa.select(table.c.key, table.c.value).where(table.c.run_id == run_id).order_by(table.c.key)
    return {row.key: row.value for row in connection.execute(query)}


def delete_tag(connection: sa.Connection, run_id: str, key: str) -> bool:
    """Whether there was such a tag."""
    gone = sa.delete(run_tags).where(run_tags.c.run_id == run_id, run_tags.c.key == key)
    return connection.execute(gone).rowcount > 0


def insert_metrics(connection: sa.Connection, rows: Sequence[MetricRow]) -> None:
    """Add points; the ids come from the database, in the order given."""
    if rows:
        connection.execute(sa.insert(metrics), [_stored_metric(row) for row in rows])


def metrics_between(
    connection: sa.Connection, run_id: str, *, attempt: int, keys: Collection[str], steps: tuple[int, int]
) -> list[MetricRow]:
    """What an attempt has logged of these keys from the first to the last of these steps."""
    query = sa.select(metrics).where(
        metrics.c.run_id == run_id,
        metrics.c.key.in_(keys),
        metrics.c.step.between(*steps),
        metrics.c.attempt == attempt,
    )
    return [_load_metric(row) for row in connection.execute(query)]


def _stored_metric(row: MetricRow) -> dict[str, Any]:
    value, text = float(row.value), None
    if not math.isfinite(value):
        text = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return {
        "run_id": row.run_id,
        "key": row.key,
        "value": value if text is None else None,
        "text": text,
        "step": row.step,
        "at_s": row.at_s,
        "attempt": row.attempt,
    }


def _load_metric(row: sa.Row[Any]) -> MetricRow:
    return MetricRow(
        id=row.id,
        run_id=row.run_id,
        key=row.key,
        value=float(row.text) if row.value is None else row.value,
        step=row.step,
        at_s=row.at_s,
        attempt=row.attempt,
    )


def read_metrics(
    connection: sa.Connection,
    run_id: str,
    *,
    keys: Iterable[str] | None = None,
    after_id: int = 0,
    limit: int | None = None,
) -> list[MetricRow]:
    """Points in order of arrival; go on with `after_id` = the last one's id."""
    query = sa.select(metrics).where(metrics.c.run_id == run_id, metrics.c.id > after_id)
    if keys is not None:
        query = query.where(metrics.c.key.in_(list(keys)))
    return [_load_metric(row) for row in connection.execute(query.order_by(metrics.c.id).limit(limit))]


def latest_metrics(connection: sa.Connection, run_id: str) -> dict[str, MetricRow]:
    """For each key the point of the highest step; of several at that step, the one that came last."""
    of_run = metrics.c.run_id == run_id
    top = sa.select(metrics.c.key, sa.func.max(metrics.c.step).label("step")).where(of_run)
    top_steps = top.group_by(metrics.c.key).subquery()
    at_top = sa.and_(metrics.c.key == top_steps.c.key, metrics.c.step == top_steps.c.step)
    last_ids = sa.select(sa.func.max(metrics.c.id)).join(top_steps, at_top).where(of_run).group_by(metrics.c.key)
    query = sa.select(metrics).where(metrics.c.id.in_(last_ids)).order_by(metrics.c.key)
    return {row.key: _load_metric(row) for row in connection.execute(query)}


def push_outbox(connection: sa.Connection, rows: Sequence[OutboxRow]) -> None:
    """Queue what MLflow must be told, behind what is queued already."""
    if rows:
        values = all_values(rows)
        for value in values:
            del value["id"]
        connection.execute(sa.insert(outbox), values)


def peek_outbox(connection: sa.Connection, *, limit: int, run_id: str | None = None) -> list[OutboxRow]:
    """The oldest rows; they stay until `drop_outbox`."""
    query = sa.select(outbox).order_by(outbox.c.id).limit(limit)
    if run_id is not None:
        query = query.where(outbox.c.run_id == run_id)
    return load_all(OutboxRow, connection.execute(query))


def drop_outbox(connection: sa.Connection, ids: Iterable[int]) -> int:
    """Forget rows that MLflow has confirmed; return how many there were."""
    return sum(connection.execute(sa.delete(outbox).where(outbox.c.id.in_(chunk))).rowcount for chunk in in_chunks(ids))


def fail_outbox(connection: sa.Connection, row_id: int, error: str) -> None:
    """Count one failed try and keep what it met."""
    failed = sa.update(outbox).where(outbox.c.id == row_id)
    connection.execute(failed.values(n_tries=outbox.c.n_tries + 1, error=error))


def count_outbox(connection: sa.Connection) -> int:
    return int(connection.scalar(sa.select(sa.func.count()).select_from(outbox)) or 0)


def outbox_runs(connection: sa.Connection) -> list[str]:
    """The runs that have rows waiting, the one with the oldest row first."""
    query = sa.select(outbox.c.run_id).group_by(outbox.c.run_id).order_by(sa.func.min(outbox.c.id))
    return list(connection.scalars(query))


def get_fact(connection: sa.Connection, key: str) -> Any:
    """The value kept under a key; None when there is none."""
    return connection.scalar(sa.select(facts.c.value).where(facts.c.key == key))


def set_fact(connection: sa.Connection, key: str, value: Any) -> None:
    """Keep a JSON value under a key; an older one is replaced."""
    insert_or_replace(connection, facts, [{"key": key, "value": value}])
