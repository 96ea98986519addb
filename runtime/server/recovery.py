"""The state from the store: the newest snapshot that can be read, and every event since."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import sqlalchemy as sa

from runtime.model.apply import apply
from runtime.model.codec import decode_event, decode_state
from runtime.model.errors import BadPayload
from runtime.model.events import Recorded
from runtime.model.state import State
from runtime.store import history, journal
from runtime.store.journal import StoredEvent
from runtime.store.writer import StoreUnusable

log = logging.getLogger(__name__)

PAGE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    state: State
    next_number: int
    """Of the next job."""
    snapshot_seq: int
    """0: there is no snapshot yet."""


def recover(connection: sa.Connection) -> Recovered:
    """Rebuild the state. A function of a connection that only reads.

    Raises:
        StoreUnusable: no snapshot can be read, and the journal does not reach back to its beginning.
        CoreError: an event can not be read or does not fit.
    """
    state, snapshot_seq = _from_snapshot(connection)
    while page := journal.read_events(connection, since=state.last_seq, limit=PAGE):
        for stored in page:
            apply(state, recorded_of(stored))
    return Recovered(state=state, next_number=history.next_number(connection), snapshot_seq=snapshot_seq)


def recorded_of(stored: StoredEvent) -> Recorded:
    return Recorded(
        seq=stored.seq,
        at_s=stored.at_s,
        actor=stored.actor,
        on_behalf_of=stored.on_behalf_of,
        project=stored.project,
        event=decode_event(stored.type, stored.version, stored.payload),
    )


def _from_snapshot(connection: sa.Connection) -> tuple[State, int]:
    for seq in journal.snapshot_seqs(connection):
        try:
            snapshot = journal.read_snapshot(connection, before=seq + 1)
            if snapshot is not None:
                return decode_state(snapshot.payload), seq
        except (BadPayload, StoreUnusable) as error:
            log.error("snapshot %d can not be read (%s); trying an older one", seq, error)
    first = journal.first_seq(connection)
    if first > 1:
        raise StoreUnusable(
            f"no snapshot can be read and the journal begins at event {first}: "
            "put back a copy of the database, or move it away to begin anew"
        )
    return State(), 0
