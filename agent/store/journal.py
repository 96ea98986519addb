"""What the event stream reads: the activity of all sessions in one order, and the messages to people.

On SQLite, the service's database, write transactions come one after the other, so a later commit has a higher number:
who has read up to a number has missed nothing below it.
"""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from agent.store.store import AgentStore
from agent.store.tables import activity, tellings


class Journal:
    def __init__(self, store: AgentStore) -> None:
        self._store = store

    def newest(self) -> int:
        """Number of the last line; 0: there is none."""
        with self._store.engine.connect() as connection:
            return int(connection.execute(sa.select(sa.func.max(activity.c.id))).scalar() or 0)

    def after(self, seq: int, limit: int, session_id: str | None = None) -> Sequence[sa.RowMapping]:
        """Lines beyond a number, in order, at most so many."""
        query = sa.select(activity).where(activity.c.id > seq).order_by(activity.c.id).limit(limit)
        if session_id is not None:
            query = query.where(activity.c.session_id == session_id)
        with self._store.engine.connect() as connection:
            return connection.execute(query).mappings().all()

    def last(self, session_id: str, limit: int) -> Sequence[sa.RowMapping]:
        """A session's newest lines, at most so many, in order."""
        mine = activity.c.session_id == session_id
        query = sa.select(activity).where(mine).order_by(activity.c.id.desc()).limit(limit)
        with self._store.engine.connect() as connection:
            return connection.execute(query).mappings().all()[::-1]

    def notices(self, session_id: str) -> Sequence[sa.RowMapping]:
        """What people were told of a session, oldest first."""
        query = sa.select(tellings).where(tellings.c.session_id == session_id).order_by(tellings.c.at, tellings.c.event)
        with self._store.engine.connect() as connection:
            return connection.execute(query).mappings().all()
