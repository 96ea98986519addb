"""The reads and changes of run tables that only tracking needs; functions of a connection, as in `store.records`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa

from runtime.store import records
from runtime.store.records import MetricRow, OutboxRow, RunRow
from runtime.store.tables import metrics, outbox, run_params, run_tags, runs

from .answers import RunContents

_CHUNK = 500

ASKED_EXPERIMENT = "nightlab.asked_experiment"
PARKED = 1_000_000
"""`n_tries` of an outbox row that is set aside."""


def take_run(connection: sa.Connection, run_id: str, *, token: str, attempt: int | None) -> None:
    """Note which request opened a run last; `attempt` is None for a job's own run."""
    change = {"idempotency_token": token, "attempt": attempt}
    connection.execute(sa.update(runs).where(runs.c.run_id == run_id).values(change))


def set_parent(connection: sa.Connection, run_id: str, parent_run_id: str) -> None:
    connection.execute(sa.update(runs).where(runs.c.run_id == run_id).values(parent_run_id=parent_run_id))


def earlier_children(
    connection: sa.Connection, *, job_id: str, before_attempt: int, parent_run_id: str, run_name: str
) -> list[RunRow]:
    """What earlier attempts of a job made under a parent with a name."""
    query = sa.select(runs).where(
        runs.c.job_id == job_id,
        runs.c.attempt < before_attempt,
        runs.c.parent_run_id == parent_run_id,
        runs.c.run_name == run_name,
    )
    return _rows(connection, query)


def children_of_job(connection: sa.Connection, job_id: str) -> list[RunRow]:
    """Every run that the script of a job made, oldest first."""
    query = sa.select(runs).where(runs.c.job_id == job_id, runs.c.attempt.is_not(None))
    return _rows(connection, query.order_by(runs.c.created_at))


def runs_of_job(connection: sa.Connection, job_id: str) -> list[RunRow]:
    """The job's own run and every further one."""
    return _rows(connection, sa.select(runs).where(runs.c.job_id == job_id).order_by(runs.c.created_at))


def find_contents(connection: sa.Connection, run_id: str) -> RunContents | None:
    """A run with everything logged to it; None when it is not ours."""
    row = records.get_run(connection, run_id)
    if row is None:
        return None
    return RunContents(
        row=row,
        params=records.get_params(connection, run_id),
        tags=records.get_tags(connection, run_id),
        latest=tuple(records.latest_metrics(connection, run_id).values()),
    )


def run_contents(connection: sa.Connection, run_id: str) -> RunContents:
    """The same for a run that is known to be ours."""
    found = find_contents(connection, run_id)
    assert found is not None
    return found


def runs_by_id(connection: sa.Connection, ids: Iterable[str]) -> dict[str, RunRow]:
    """Runs by our id, for those of the ids that are ours."""
    return {row.run_id: row for row in _in(connection, runs.c.run_id, ids)}


def runs_by_mlflow_id(connection: sa.Connection, ids: Iterable[str]) -> dict[str, RunRow]:
    return {str(row.mlflow_run_id): row for row in _in(connection, runs.c.mlflow_run_id, ids)}


def runs_of_experiments(connection: sa.Connection, names: Sequence[str], *, limit: int) -> list[RunRow]:
    """Runs of these experiments, or whose script asked for one of them; newest first."""
    asked = sa.select(run_tags.c.run_id).where(run_tags.c.key == ASKED_EXPERIMENT, run_tags.c.value.in_(names))
    query = sa.select(runs).where(sa.or_(runs.c.experiment_name.in_(names), runs.c.run_id.in_(asked)))
    return _rows(connection, query.order_by(runs.c.created_at.desc(), runs.c.run_id).limit(limit))


def experiment_names(connection: sa.Connection, *, limit: int) -> list[str]:
    query = sa.select(runs.c.experiment_name).group_by(runs.c.experiment_name)
    return list(connection.scalars(query.order_by(sa.func.max(runs.c.created_at).desc()).limit(limit)))


def pairs_of_runs(connection: sa.Connection, ids: Sequence[str], *, kind: str) -> dict[str, dict[str, str]]:
    """Params or tags of many runs at once."""
    table = run_params if kind == "params" else run_tags
    found: dict[str, dict[str, str]] = {run_id: {} for run_id in ids}
    for chunk in _chunks(ids):
        for row in connection.execute(sa.select(table).where(table.c.run_id.in_(chunk))):
            found[row.run_id][row.key] = row.value
    return found


def latest_of_runs(connection: sa.Connection, ids: Sequence[str]) -> dict[str, dict[str, MetricRow]]:
    """For each run and metric the point of the highest step, the newest of it."""
    found: dict[str, dict[str, MetricRow]] = {run_id: {} for run_id in ids}
    order = (metrics.c.step.desc(), metrics.c.id.desc())
    rank = sa.func.row_number().over(partition_by=(metrics.c.run_id, metrics.c.key), order_by=order).label("rank")
    for chunk in _chunks(ids):
        ranked = sa.select(metrics, rank).where(metrics.c.run_id.in_(chunk)).subquery()
        for row in connection.execute(sa.select(ranked).where(ranked.c.rank == 1)):
            found[row.run_id][row.key] = MetricRow(
                run_id=row.run_id,
                key=row.key,
                value=float(row.text) if row.value is None else row.value,
                step=row.step,
                at_s=row.at_s,
                attempt=row.attempt,
                id=row.id,
            )
    return found


def waiting_runs(connection: sa.Connection) -> list[str]:
    """Runs with rows that are not parked, the one with the oldest first."""
    query = sa.select(outbox.c.run_id).where(outbox.c.n_tries < PARKED)
    return list(connection.scalars(query.group_by(outbox.c.run_id).order_by(sa.func.min(outbox.c.id))))


def waiting_rows(connection: sa.Connection, run_id: str, *, limit: int) -> list[OutboxRow]:
    """The oldest rows of a run that are not parked."""
    query = sa.select(outbox).where(outbox.c.run_id == run_id, outbox.c.n_tries < PARKED)
    return [OutboxRow(**row._mapping) for row in connection.execute(query.order_by(outbox.c.id).limit(limit))]


def n_waiting(connection: sa.Connection, run_ids: Sequence[str]) -> int:
    """How many rows of these runs are not parked."""
    query = sa.select(sa.func.count()).select_from(outbox)
    return int(connection.scalar(query.where(outbox.c.run_id.in_(run_ids), outbox.c.n_tries < PARKED)) or 0)


def parked_rows(connection: sa.Connection, *, limit: int) -> list[OutboxRow]:
    """What MLflow will not take, with the errors; newest first."""
    query = sa.select(outbox).where(outbox.c.n_tries >= PARKED).order_by(outbox.c.id.desc()).limit(limit)
    return [OutboxRow(**row._mapping) for row in connection.execute(query)]


def count_parked(connection: sa.Connection) -> int:
    query = sa.select(sa.func.count()).select_from(outbox).where(outbox.c.n_tries >= PARKED)
    return int(connection.scalar(query) or 0)


def tries_of(connection: sa.Connection, row_id: int) -> int:
    return int(connection.scalar(sa.select(outbox.c.n_tries).where(outbox.c.id == row_id)) or 0)


def park_rows(connection: sa.Connection, ids: Iterable[int], *, error: str) -> None:
    """Set rows aside: they are kept with the error and wait for `unpark_all`."""
    for chunk in _chunks(list(ids)):
        connection.execute(sa.update(outbox).where(outbox.c.id.in_(chunk)).values(n_tries=PARKED, error=error))


def unpark_all(connection: sa.Connection) -> int:
    """Give every parked row a new chance; how many there were."""
    return connection.execute(sa.update(outbox).where(outbox.c.n_tries >= PARKED).values(n_tries=1)).rowcount


def ended_runs(connection: sa.Connection, *, limit: int) -> list[RunRow]:
    """Ended runs that MLflow has and that wait for nothing, newest first."""
    waits = sa.select(outbox.c.run_id)
    query = sa.select(runs).where(
        runs.c.ended_at.is_not(None), runs.c.mlflow_run_id.is_not(None), runs.c.run_id.not_in(waits)
    )
    return _rows(connection, query.order_by(runs.c.ended_at.desc()).limit(limit))


def mlflow_experiment(connection: sa.Connection, name: str) -> str | None:
    """MLflow's id of an experiment, from any run of it that MLflow has."""
    query = sa.select(runs.c.mlflow_experiment_id).where(
        runs.c.experiment_name == name, runs.c.mlflow_experiment_id.is_not(None)
    )
    return connection.scalar(query.order_by(runs.c.created_at.desc()).limit(1))


def pending_artifacts(connection: sa.Connection, run_id: str) -> list[OutboxRow]:
    """Artifact rows of a run that MLflow has not taken, oldest first."""
    query = sa.select(outbox).where(outbox.c.run_id == run_id, outbox.c.kind == "artifact")
    return [OutboxRow(**row._mapping) for row in connection.execute(query.order_by(outbox.c.id))]


def spooled_files(connection: sa.Connection) -> frozenset[str]:
    """The names of all files that wait in the spool."""
    query = sa.select(outbox.c.payload).where(outbox.c.kind == "artifact")
    return frozenset(str(payload["file"]) for payload in connection.scalars(query))


def _in(connection: sa.Connection, column: sa.Column[Any], ids: Iterable[str]) -> list[RunRow]:
    found: list[RunRow] = []
    for chunk in _chunks(list(dict.fromkeys(ids))):
        found.extend(_rows(connection, sa.select(runs).where(column.in_(chunk))))
    return found


def _rows(connection: sa.Connection, query: sa.Select[Any]) -> list[RunRow]:
    return [RunRow(**row._mapping) for row in connection.execute(query)]


def _chunks(ids: Sequence[Any]) -> Iterable[Sequence[Any]]:
    return (ids[start : start + _CHUNK] for start in range(0, len(ids), _CHUNK))
