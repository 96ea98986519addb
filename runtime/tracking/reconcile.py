"""Does MLflow's record agree with our tables? Compares ended runs, value by value."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from runtime.store import records
from runtime.store.records import MetricRow, RunRow

from . import queries
from .ports import Store
from .rest import MlflowRefused, MlflowRest

Stored = tuple[float | str, int, int]
"""(value, milliseconds, step), the value as MLflow can hold it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    run_id: str
    message: str
    """What differs: the metric, ours and MLflow's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciliation:
    n_runs: int
    """How many runs were compared."""
    differences: tuple[Difference, ...]


async def reconcile(store: Store, rest: MlflowRest, *, limit: int = 100) -> Reconciliation:
    """Compare the newest ended runs that wait for nothing: status, params, and every metric's points.

    Raises:
        MlflowAway, MlflowFailed: MLflow can not be asked now.
    """
    rows = await store.read(lambda connection: queries.ended_runs(connection, limit=limit))
    found: list[Difference] = []
    for row in rows:
        messages = await _compare(store, rest, row)
        found.extend(Difference(run_id=row.run_id, message=message) for message in messages)
    return Reconciliation(n_runs=len(rows), differences=tuple(found))


async def _compare(store: Store, rest: MlflowRest, row: RunRow) -> list[str]:
    mlflow_run_id = row.mlflow_run_id or ""
    points = await store.read(lambda connection: records.read_metrics(connection, row.run_id))
    params = await store.read(lambda connection: records.get_params(connection, row.run_id))
    try:
        remote, data = await rest.run(mlflow_run_id)
    except MlflowRefused as refused:
        return [f"MLflow has no such run any more ({refused})"]
    messages = []
    if remote.status != row.status:
        messages.append(f"status: ours {row.status}, MLflow's {remote.status}")
    if (theirs := {item["key"]: item["value"] for item in data.get("params", [])}) != params:
        odd = sorted(key for key in theirs.keys() | params.keys() if theirs.get(key) != params.get(key))
        messages.append(f"params differ: {', '.join(odd[:5])}")
    for key in sorted({point.key for point in points}):
        ours = _ours(point for point in points if point.key == key)
        history = await rest.history(mlflow_run_id, key)
        messages.extend(_differ(key, ours, {_theirs(item) for item in history}))
    return messages


def _differ(key: str, ours: set[Stored], theirs: set[Stored]) -> list[str]:
    if ours == theirs:
        return []
    return [f"metric {key!r}: {len(ours - theirs)} of our {len(ours)} points are not there, {len(theirs - ours)} more"]


def _ours(points: Iterable[MetricRow]) -> set[Stored]:
    """As a set: MLflow keeps a point that was sent twice once."""
    return {(_value(point.value), round(point.at_s * 1000), point.step) for point in points}


def _theirs(item: dict[str, Any]) -> Stored:
    return _value(float(item["value"])), int(item["timestamp"]), int(item.get("step", 0))


def _value(value: float) -> float | str:
    """MLflow's databases hold infinities as the largest float."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return math.copysign(sys.float_info.max, value)
    return value
