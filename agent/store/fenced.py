"""The fenced writer: what a session process writes goes through it, and every transaction checks the fence first.

Statements are made once here: building them anew costs more than running them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from agent.store.schema import writing
from agent.store.store import AgentStore
from agent.store.tables import activity, sessions

_IS_MINE = sessions.c.session_id == sa.bindparam("mine")
_FENCE = sa.select(sessions.c.fence).where(_IS_MINE).with_for_update()
_SET = sa.update(sessions).where(_IS_MINE)
_ADD = _SET.values(
    n_trials=sessions.c.n_trials + sa.bindparam("more_trials"),
    device_seconds=sessions.c.device_seconds + sa.bindparam("more_device_seconds"),
    wall_seconds=sessions.c.wall_seconds + sa.bindparam("more_wall_seconds"),
    tokens=sessions.c.tokens + sa.bindparam("more_tokens"),
    cost_usd=sessions.c.cost_usd + sa.bindparam("more_cost_usd"),
)
_SAY = sa.insert(activity)


class FenceLost(Exception):
    """Another process has claimed the session; this one must stop and touch nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of activity to record."""

    step: str
    text: str
    trial_id: str | None = None
    job_id: str | None = None


class FencedWriter:
    def __init__(self, store: AgentStore, session_id: str, fence: int) -> None:
        self.store = store
        self.session_id = session_id
        self.fence = fence

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """One short transaction.

        Raises:
            FenceLost: a newer claim exists; nothing was written.
        """
        with writing(self.store.engine) as connection:
            newest = connection.execute(_FENCE, {"mine": self.session_id}).scalar()
            if newest != self.fence:
                raise FenceLost(f"{self.session_id}: fence {self.fence} is older than {newest}")
            yield connection

    def set(self, connection: sa.Connection, **values: Any) -> None:
        """Set columns of the session's row."""
        connection.execute(_SET, {"mine": self.session_id, **values})

    def add(
        self,
        connection: sa.Connection,
        *,
        trials: int = 0,
        device_seconds: float = 0.0,
        wall_seconds: float = 0.0,
        tokens: int = 0,
        cost_usd: float = 0.0,
    ) -> None:
        """Add to the session's counters; nothing happens when there is nothing to add."""
        more = {
            "more_trials": trials,
            "more_device_seconds": device_seconds,
            "more_wall_seconds": wall_seconds,
            "more_tokens": tokens,
            "more_cost_usd": cost_usd,
        }
        if not any(more.values()):
            return
        connection.execute(_ADD, {"mine": self.session_id, **more})

    def say(self, connection: sa.Connection, lines: Iterable[Line]) -> None:
        """Record activity."""
        now = self.store.clock()
        said = [
            {
                "session_id": self.session_id,
                "at": now,
                "step": line.step,
                "text": line.text,
                "trial_id": line.trial_id,
                "job_id": line.job_id,
            }
            for line in lines
        ]
        if said:
            connection.execute(_SAY, said)


class AddingWriter(FencedWriter):
    """For those who are not the session's process and only add to its sums and its activity: a chat about it.

    It takes the row's lock as the session does, and whoever holds the session may be anybody.
    """

    def __init__(self, store: AgentStore, session_id: str) -> None:
        super().__init__(store, session_id, fence=-1)

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """One short transaction."""
        with writing(self.store.engine) as connection:
            connection.execute(_FENCE, {"mine": self.session_id})
            yield connection
