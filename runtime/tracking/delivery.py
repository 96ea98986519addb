"""From outbox rows of one run to the calls that MLflow needs: neighbours merged, order kept. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runtime.store.records import OutboxRow

from .requests import MAX_ENTITIES, MAX_METRICS, MAX_PARAMS_OR_TAGS

MAX_BYTES = 700_000
"""Of a request that the mirror puts together; MLflow refuses batches above one million."""
_METRIC_BYTES = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Create:
    rows: tuple[OutboxRow, ...]
    tags: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    rows: tuple[OutboxRow, ...]
    metrics: tuple[tuple[Any, ...], ...]
    """(key, value, milliseconds, step)"""
    params: dict[str, str]
    tags: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    rows: tuple[OutboxRow, ...]
    status: str
    end_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Other:
    """A call that is never merged: `untag`, `rename`, `call`, `artifact`."""

    rows: tuple[OutboxRow, ...]
    kind: str
    payload: dict[str, Any]


Delivery = Create | Log | Status | Other


def plan(rows: Sequence[OutboxRow]) -> list[Delivery]:
    """Deliveries for the rows of one run, in order.

    A row that failed before is never merged with others, so that one bad row can not take its neighbours along.
    """
    deliveries: list[Delivery] = []
    for row in rows:
        step = single(row)
        last = deliveries[-1] if deliveries else None
        merged = None if last is None or row.n_tries or last.rows[-1].n_tries else _merge(last, step)
        if merged is None:
            deliveries.append(step)
        else:
            deliveries[-1] = merged
    return deliveries


def single(row: OutboxRow) -> Delivery:
    """The delivery of one row alone."""
    payload = row.payload
    match row.kind:
        case "create":
            return Create(rows=(row,), tags=payload["tags"])
        case "log":
            metrics = tuple(tuple(point) for point in payload.get("m", ()))
            return Log(rows=(row,), metrics=metrics, params=payload.get("p", {}), tags=payload.get("t", {}))
        case "status":
            return Status(rows=(row,), status=payload["status"], end_ms=payload["end_ms"])
    return Other(rows=(row,), kind=row.kind, payload=payload)


def _merge(one: Delivery, other: Delivery) -> Delivery | None:
    match one, other:
        case Status(), Status():
            return Status(rows=one.rows + other.rows, status=other.status, end_ms=other.end_ms)
        case Log(), Log():
            merged = Log(
                rows=one.rows + other.rows,
                metrics=one.metrics + other.metrics,
                params={**one.params, **other.params},
                tags={**one.tags, **other.tags},
            )
            return merged if _fits(merged) else None
    return None


def _fits(log: Log) -> bool:
    return (
        len(log.metrics) <= MAX_METRICS
        and len(log.params) <= MAX_PARAMS_OR_TAGS
        and len(log.tags) <= MAX_PARAMS_OR_TAGS
        and len(log.metrics) + len(log.params) + len(log.tags) <= MAX_ENTITIES
        and size_of(log.params) + size_of(log.tags) + _METRIC_BYTES * len(log.metrics) <= MAX_BYTES
    )


def size_of(pairs: Mapping[str, str]) -> int:
    """About how many bytes params or tags take in a request."""
    return sum(len(key) + len(value) + 30 for key, value in pairs.items())
