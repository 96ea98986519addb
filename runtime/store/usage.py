"""Which attempts held which devices when, for accounts of what was spent. Functions of a connection."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from runtime.model.nouns import Placement
from runtime.model.states import AttemptOutcome, JobState, StopCause

from .rows import in_chunks, load_all
from .tables import attempts, events, jobs

Key = tuple[str, int]
"""Job and attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UseRow:
    """An attempt with what an account needs of its job. Times are seconds since the epoch."""

    job_id: str
    attempt: int
    placements: tuple[Placement, ...]
    ordered_at: float
    """From then on it holds its devices."""
    ended_at: float | None
    """None: it still does."""
    stop_cause: StopCause | None
    outcome: AttemptOutcome | None
    project: str
    session_id: str | None
    state: JobState
    """Of the job now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeEvent:
    """A registration or a departure of a node."""

    at_s: float
    node_id: str
    devices: tuple[tuple[int, str], ...] | None
    """Index and kind of each; None: it left."""


def attempts_since(connection: sa.Connection, since_s: float) -> list[UseRow]:
    """Attempts that held devices after `since_s`."""
    names = ("job_id", "attempt", "placements", "ordered_at", "ended_at", "stop_cause", "outcome")
    query = (
        sa.select(*(attempts.c[name] for name in names), jobs.c.project, jobs.c.session_id, jobs.c.state)
        .join(jobs, jobs.c.job_id == attempts.c.job_id)
        .where(sa.or_(attempts.c.ended_at.is_(None), attempts.c.ended_at > since_s))
        .order_by(jobs.c.number, attempts.c.attempt)
    )
    return load_all(UseRow, connection.execute(query))


def jobs_with_tag(connection: sa.Connection, job_ids: Iterable[str], tag: str, value: str) -> frozenset[str]:
    """Those of these jobs whose spec has the tag with this value."""
    found: set[str] = set()
    for chunk in in_chunks(job_ids):
        for row in connection.execute(sa.select(jobs.c.job_id, jobs.c.spec).where(jobs.c.job_id.in_(chunk))):
            if (row.spec.get("tags") or {}).get(tag) == value:
                found.add(row.job_id)
    return frozenset(found)


def last_checkpoints(connection: sa.Connection, job_ids: Iterable[str]) -> dict[Key, float]:
    """When the newest checkpoint of each attempt was seen, as far back as the journal reaches."""
    found: dict[Key, float] = {}
    for chunk in in_chunks(job_ids):
        query = (
            sa.select(events.c.job_id, events.c.at_s, events.c.payload)
            .where(events.c.job_id.in_(chunk), events.c.type == "checkpoint_seen")
            .order_by(events.c.seq)
        )
        for row in connection.execute(query):
            found[(row.job_id, row.payload["attempt"])] = row.at_s
    return found


def stop_reasons(connection: sa.Connection, job_ids: Iterable[str]) -> dict[Key, str]:
    """Why attempts were asked to stop, the last time each was, as far back as the journal reaches."""
    found: dict[Key, str] = {}
    for chunk in in_chunks(job_ids):
        query = (
            sa.select(events.c.job_id, events.c.payload)
            .where(events.c.job_id.in_(chunk), events.c.type == "stop_ordered")
            .order_by(events.c.seq)
        )
        for row in connection.execute(query):
            found[(row.job_id, row.payload["attempt"])] = row.payload["reason"]
    return found


def node_events(connection: sa.Connection) -> list[NodeEvent]:
    """Registrations and departures of nodes, oldest first, as far back as the journal reaches."""
    query = sa.select(events.c.at_s, events.c.type, events.c.payload).order_by(events.c.seq)
    rows = connection.execute(query.where(events.c.type.in_(("node_joined", "node_left"))))
    return [_node_event(row.at_s, row.type, row.payload) for row in rows]


def _node_event(at_s: float, event_type: str, payload: dict[str, Any]) -> NodeEvent:
    if event_type == "node_left":
        return NodeEvent(at_s=at_s, node_id=payload["node_id"], devices=None)
    node = payload["node"]
    devices = tuple((device["index"], device["kind"]) for device in node["devices"])
    return NodeEvent(at_s=at_s, node_id=node["node_id"], devices=devices)
