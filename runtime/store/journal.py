"""The journal of events and the snapshots that shorten its replay. Functions of a connection.

Sequence numbers are 1, 2, 3, ... without gaps. What a payload means is the codec's business, not the journal's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from .rows import all_values, insert_or_replace, load, load_all
from .tables import events, snapshots
from .writer import StoreRefused

N_SNAPSHOTS = 2
"""Kept: the newest, and one to fall back on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEvent:
    seq: int
    type: str
    version: int
    """Of the payload's layout; older ones are upcast by the codec."""
    at_s: float
    """Seconds since the epoch."""
    actor: str
    on_behalf_of: str | None
    project: str | None
    job_id: str | None
    payload: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    seq: int
    """The last event that the payload contains."""
    at_s: float
    payload: dict[str, Any]


def append(connection: sa.Connection, recorded: Sequence[StoredEvent]) -> None:
    """Write events behind the last one.

    Raises:
        StoreRefused: the numbers do not go on from the journal's last one without a gap.
    """
    if not recorded:
        return
    expected = last_seq(connection) + 1
    for stored in recorded:
        if stored.seq != expected:
            raise StoreRefused(f"journal: event {stored.seq} where {expected} must come next")
        expected += 1
    connection.execute(sa.insert(events), all_values(recorded))


def read_events(connection: sa.Connection, *, since: int, limit: int, job_id: str | None = None) -> list[StoredEvent]:
    """The events after `since`, oldest first. Compare with `first_seq`: pruned ones are missing silently."""
    query = sa.select(events).where(events.c.seq > since).order_by(events.c.seq).limit(limit)
    if job_id is not None:
        query = query.where(events.c.job_id == job_id)
    return load_all(StoredEvent, connection.execute(query))


def first_seq(connection: sa.Connection) -> int:
    """The oldest event that can still be read; one more than `last_seq` when there is none."""
    first = connection.scalar(sa.select(sa.func.min(events.c.seq)))
    return last_seq(connection) + 1 if first is None else int(first)


def last_seq(connection: sa.Connection) -> int:
    """The newest number given out, 0 before the first. Snapshots count: the events below them may be pruned."""
    newest = connection.execute(
        sa.select(
            sa.select(sa.func.max(events.c.seq)).scalar_subquery(),
            sa.select(sa.func.max(snapshots.c.seq)).scalar_subquery(),
        )
    ).one()
    return max(newest[0] or 0, newest[1] or 0)


def write_snapshot(connection: sa.Connection, *, seq: int, at_s: float, payload: dict[str, Any]) -> None:
    """Keep the state after event `seq`; older snapshots than the last two are dropped.

    Raises:
        StoreRefused: there is no event `seq` yet.
    """
    if not 0 <= seq <= (newest := last_seq(connection)):
        raise StoreRefused(f"snapshot: event {seq} does not exist; the journal ends at {newest}")
    insert_or_replace(connection, snapshots, [{"seq": seq, "at_s": at_s, "payload": payload}])
    kept = sa.select(snapshots.c.seq).order_by(snapshots.c.seq.desc()).limit(N_SNAPSHOTS)
    oldest_kept = min(connection.scalars(kept))
    connection.execute(sa.delete(snapshots).where(snapshots.c.seq < oldest_kept))


def read_snapshot(connection: sa.Connection, *, before: int | None = None) -> Snapshot | None:
    """The newest snapshot; with `before`, the newest below that number (to fall back on).

    Raises:
        StoreUnusable: its payload is not the JSON that was written (see `snapshot_seqs`).
    """
    query = sa.select(snapshots).order_by(snapshots.c.seq.desc()).limit(1)
    if before is not None:
        query = query.where(snapshots.c.seq < before)
    row = connection.execute(query).one_or_none()
    return None if row is None else load(Snapshot, row)


def snapshot_seqs(connection: sa.Connection) -> list[int]:
    """The numbers of the kept snapshots, newest first; readable whatever became of their payloads."""
    return [int(seq) for seq in connection.scalars(sa.select(snapshots.c.seq).order_by(snapshots.c.seq.desc()))]


def prune_events(connection: sa.Connection, *, before_s: float) -> int:
    """Drop events older than `before_s` (seconds since the epoch), oldest first; return how many.

    Every event that a kept snapshot still needs stays, and the rest has no holes, whatever the clock did.
    """
    oldest_snapshot = connection.scalar(sa.select(sa.func.min(snapshots.c.seq)))
    if oldest_snapshot is None:
        return 0
    first_young = connection.scalar(sa.select(sa.func.min(events.c.seq)).where(events.c.at_s >= before_s))
    last_old = oldest_snapshot if first_young is None else min(oldest_snapshot, first_young - 1)
    return connection.execute(sa.delete(events).where(events.c.seq <= last_old)).rowcount
