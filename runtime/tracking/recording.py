"""Writing to a run: the tables and, in the same transaction, the outbox that MLflow is told from.

Outbox kinds: `create` {tags}, `log` {m, p, t}, `untag` {key}, `status` {status, end_ms}, `rename` {name},
`call` {path, body}, `artifact` {path, file}. Rows of one run are delivered in their order.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from runtime.store import records
from runtime.store.records import MetricRow, OutboxRow, ParamConflict, RunRow

from . import queries
from .delivery import MAX_BYTES, size_of
from .requests import MAX_METRICS, MAX_PARAMS_OR_TAGS, Point

PARENT_TAG = "mlflow.parentRunId"
NAME_TAG = "mlflow.runName"
IGNORED_PARAM = "nightlab.ignored_param."
FINAL = frozenset({"FINISHED", "FAILED", "KILLED"})
STATUSES = FINAL | {"RUNNING", "SCHEDULED"}


class ParamChanged(Exception):
    """A parameter was given a second value by the same attempt; nothing of the call was kept."""

    def __init__(self, run_id: str, conflict: ParamConflict) -> None:
        super().__init__(
            f"Changing param values is not allowed. Param with key='{conflict.key}' was already logged with value="
            f"'{conflict.stored}' for run ID='{run_id}'. Attempted logging new value '{conflict.given}'."
        )


def push(connection: sa.Connection, run_id: str, kind: str, payload: Mapping[str, Any]) -> None:
    records.push_outbox(connection, [OutboxRow(run_id=run_id, kind=kind, payload=dict(payload))])


def new_run(connection: sa.Connection, row: RunRow, *, tags: Mapping[str, str], params: Mapping[str, str]) -> None:
    """Insert a run with its first tags and params, and queue its creation."""
    first = {**tags, "nightlab.run_id": row.run_id, NAME_TAG: row.run_name}
    if row.parent_run_id is not None:
        first[PARENT_TAG] = row.parent_run_id
    records.insert_run(connection, row)
    records.set_tags(connection, row.run_id, first)
    push(connection, row.run_id, "create", {"tags": first})
    if params:
        records.set_params(connection, row.run_id, params)
        _push_log(connection, row.run_id, points=(), params=params, tags={})
    if row.status != "RUNNING":
        push(connection, row.run_id, "status", {"status": row.status, "end_ms": None})


def log(
    connection: sa.Connection,
    run_id: str,
    *,
    attempt: int,
    points: Sequence[Point] = (),
    params: Mapping[str, str] | None = None,
    tags: Mapping[str, str] | None = None,
    own_params: Collection[str] = (),
    is_reread: bool = False,
) -> frozenset[str]:
    """Record points, params and tags; return the params that were ignored.

    A point that this attempt has sent before is not recorded again: a request is repeated when its answer was lost
    with the server, and MLflow keeps equal points once too. With `is_reread` the time does not tell two points
    apart: they come from output that is read again after a crash.

    `own_params` are the params that this attempt logged itself. One of them with another value is an error, as in
    MLflow; one that the submission or an earlier attempt recorded keeps its first value, and a tag says what was
    ignored (a resumed script, or one that renders a parameter differently, must not fail for that).

    Raises:
        ParamChanged: nothing was kept if the caller's transaction is rolled back.
    """
    points = _new_points(connection, run_id, attempt, points, is_reread=is_reread)
    notes = dict(tags or {})
    kept = dict(params or {})
    ignored: set[str] = set()
    for conflict in records.set_params(connection, run_id, kept) if kept else ():
        if conflict.key in own_params:
            raise ParamChanged(run_id, conflict)
        del kept[conflict.key]
        ignored.add(conflict.key)
        if not _is_same_number(conflict.stored, conflict.given):
            notes[(IGNORED_PARAM + conflict.key)[:250]] = conflict.given
    if notes:
        records.set_tags(connection, run_id, notes)
    records.insert_metrics(
        connection,
        [
            MetricRow(run_id=run_id, key=key, value=value, step=step, at_s=at_s, attempt=attempt)
            for key, value, step, at_s in points
        ],
    )
    _push_log(connection, run_id, points=points, params=kept, tags=notes)
    return frozenset(ignored)


def _new_points(
    connection: sa.Connection, run_id: str, attempt: int, points: Sequence[Point], *, is_reread: bool
) -> list[Point]:
    if not points:
        return []
    steps = [step for _, _, step, _ in points]
    keys = {key for key, *_ in points}
    known = records.metrics_between(connection, run_id, attempt=attempt, keys=keys, steps=(min(steps), max(steps)))
    seen = {_identity(row.key, row.value, row.step, row.at_s, is_reread) for row in known}
    new: list[Point] = []
    for point in points:
        identity = _identity(*point, is_reread)
        if identity not in seen:
            seen.add(identity)
            new.append(point)
    return new


def _identity(key: str, value: float, step: int, at_s: float, is_reread: bool) -> tuple[str, str, int, float]:
    """The value as text: NaN equals nothing, not even itself."""
    return key, repr(float(value)), step, 0.0 if is_reread else at_s


def untag(connection: sa.Connection, run_id: str, key: str) -> bool:
    """Whether there was such a tag."""
    if not records.delete_tag(connection, run_id, key):
        return False
    push(connection, run_id, "untag", {"key": key})
    return True


def rename(connection: sa.Connection, run_id: str, name: str) -> None:
    records.update_run(connection, run_id, run_name=name)
    records.set_tags(connection, run_id, {NAME_TAG: name})
    push(connection, run_id, "rename", {"name": name})


def set_parent(connection: sa.Connection, run_id: str, parent_run_id: str) -> None:
    """Put a run under another of ours; the mirror translates the id."""
    queries.set_parent(connection, run_id, parent_run_id)
    records.set_tags(connection, run_id, {PARENT_TAG: parent_run_id})
    _push_log(connection, run_id, points=(), params={}, tags={PARENT_TAG: parent_run_id})


def set_status(connection: sa.Connection, row: RunRow, status: str, at_s: float) -> None:
    """The status that counts; a final one sets the end."""
    ended_at = at_s if status in FINAL else None
    if row.status == status and (row.ended_at is None) == (ended_at is None):
        return
    records.update_run(connection, row.run_id, status=status, ended_at=ended_at)
    end_ms = None if ended_at is None else round(ended_at * 1000)
    push(connection, row.run_id, "status", {"status": status, "end_ms": end_ms})


def _push_log(
    connection: sa.Connection,
    run_id: str,
    *,
    points: Sequence[Point],
    params: Mapping[str, str],
    tags: Mapping[str, str],
) -> None:
    """Queue what was recorded, in rows of a size that MLflow takes."""
    metric_list = [[key, value, round(at_s * 1000), step] for key, value, step, at_s in points]
    param_list, tag_list = list(params.items()), list(tags.items())
    while metric_list or param_list or tag_list:
        chunk_params, param_list = param_list[:MAX_PARAMS_OR_TAGS], param_list[MAX_PARAMS_OR_TAGS:]
        n_tags = 0 if size_of(dict(chunk_params)) > MAX_BYTES / 3 else MAX_PARAMS_OR_TAGS
        chunk_tags, tag_list = tag_list[:n_tags], tag_list[n_tags:]
        room = MAX_METRICS - len(chunk_params) - len(chunk_tags)
        chunk_metrics, metric_list = metric_list[:room], metric_list[room:]
        payload: dict[str, Any] = {}
        if chunk_metrics:
            payload["m"] = chunk_metrics
        if chunk_params:
            payload["p"] = dict(chunk_params)
        if chunk_tags:
            payload["t"] = dict(chunk_tags)
        push(connection, run_id, "log", payload)


def _is_same_number(one: str, other: str) -> bool:
    try:
        return float(one) == float(other)
    except ValueError:
        return one == other
