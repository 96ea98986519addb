"""Messages about sessions as rows: written before they are sent, marked after it, so each is told at least once."""

from __future__ import annotations

import sqlalchemy as sa

from agent.store.schema import writing
from agent.store.store import AgentStore
from agent.store.tables import sessions, tellings
from agent.store.views import SessionState

_NAMES_SOMEBODY = '%"notify":[{%'
"""In a stored task. Inside of a text of the task the quotes would be escaped, so nothing else looks like it."""


class TellingStore:
    def __init__(self, store: AgentStore) -> None:
        self._store = store

    def to_tell(self) -> list[str]:
        """Sessions of which somebody wants to be told, and was not told that they ended."""
        query = sa.select(sessions.c.session_id, sessions.c.state, sessions.c.fence)
        query = query.where(sessions.c.task_json.like(_NAMES_SOMEBODY)).order_by(sessions.c.number)
        said = sa.select(tellings.c.session_id, tellings.c.event).where(tellings.c.told_at.is_not(None))
        with self._store.engine.connect() as connection:
            found = connection.execute(query).all()
            told = {(row.session_id, row.event) for row in connection.execute(said)} if found else set()
        at_work = (SessionState.RUNNING, SessionState.STOPPING)
        return [
            row.session_id
            for row in found
            if row.state in at_work or (row.session_id, f"ended-{row.fence}") not in told
        ]

    def told(self, session_id: str) -> frozenset[str]:
        """Keys of the events that people were told of."""
        mine = sa.select(tellings.c.event).where(tellings.c.session_id == session_id, tellings.c.told_at.is_not(None))
        with self._store.engine.connect() as connection:
            return frozenset(connection.execute(mine).scalars())

    def intend(self, session_id: str, event: str) -> None:
        """Write it down before it is sent."""
        which = {"session_id": session_id, "event": event}
        same = sa.and_(tellings.c.session_id == session_id, tellings.c.event == event)
        with writing(self._store.engine) as connection:
            if connection.execute(sa.select(tellings.c.event).where(same)).first() is None:
                connection.execute(sa.insert(tellings).values(**which, at=self._store.clock()))

    def mark_told(self, session_id: str, event: str, note: str) -> None:
        """Sent, with what became of it at each address."""
        same = sa.and_(tellings.c.session_id == session_id, tellings.c.event == event)
        with writing(self._store.engine) as connection:
            connection.execute(sa.update(tellings).where(same).values(told_at=self._store.clock(), note=note))

    def lost(self, session_id: str) -> list[tuple[str, str]]:
        """Events that somebody could not be told of, with why."""
        mine = sa.and_(tellings.c.session_id == session_id, tellings.c.note.like("%: not told%"))
        query = sa.select(tellings.c.event, tellings.c.note).where(mine).order_by(tellings.c.at)
        with self._store.engine.connect() as connection:
            return [(str(row.event), str(row.note)) for row in connection.execute(query)]
