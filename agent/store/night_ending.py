"""`NightEnding`: how a night ends in the store, in two steps that a kill between them can not part.

First the outcome (`conclude`, or `fail` where its process can not live). Then what is owed to people, its page and its
messages; until that is done the night is not settled, and the agent service has a process work on it again.
"""

from __future__ import annotations

from dataclasses import replace

import sqlalchemy as sa

from agent.store.night_reading import NightReading
from agent.store.schema import writing
from agent.store.store import AgentStore
from agent.store.tables import nights
from agent.sweeps.summary_text import summary_to_json
from agent.sweeps.views import NightOutcome, NightState, NightSummary, NightView

AT_WORK = (NightState.RUNNING.value, NightState.STOPPING.value)


class NightFenceLost(Exception):
    """Another process has claimed the night since."""


class NightEnding(NightReading):
    def __init__(self, store: AgentStore) -> None:
        super().__init__(store)
        self.store = store

    def begin_ending(self, night_id: str, fence: int) -> int:
        """Count this process among those that have tried to end the night, before it does anything; how many have.

        Raises:
            NightFenceLost: another process has claimed the night.
        """
        self._check_fence(night_id, fence)
        mine = nights.c.night_id == night_id
        with writing(self._engine) as connection:
            connection.execute(sa.update(nights).where(mine).values(n_endings=nights.c.n_endings + 1))
            return int(connection.execute(sa.select(nights.c.n_endings).where(mine)).scalar_one())

    def conclude(
        self, night_id: str, fence: int, *, outcome: NightOutcome, message: str, summary: NightSummary | None
    ) -> NightView:
        """Write how it ended, once. It is settled later.

        Raises:
            NightFenceLost: another process has claimed the night.
        """
        self._check_fence(night_id, fence)
        with writing(self._engine) as connection:
            open_ = (nights.c.night_id == night_id) & (nights.c.state.in_(AT_WORK)) & (nights.c.fence == fence)
            connection.execute(
                sa.update(nights)
                .where(open_)
                .values(
                    state=NightState.ENDED.value,
                    outcome=outcome.value,
                    message=message,
                    ended_at=self.store.clock(),
                    summary=None if summary is None else summary_to_json(summary),
                )
            )
        return self.night(night_id)

    def settle(self, night_id: str, fence: int) -> None:
        """Its page is written, everybody was told: no process works on it any more.

        Raises:
            NightFenceLost: another process has claimed the night.
        """
        self._check_fence(night_id, fence)
        with writing(self._engine) as connection:
            mine = (nights.c.night_id == night_id) & (nights.c.fence == fence)
            change = {"settled_at": self.store.clock(), "pid": None, "pid_started_at": None}
            connection.execute(sa.update(nights).where(mine).values(**change))

    def fail(self, night_id: str, message: str) -> None:
        """Give up a night whose process can not be kept alive; used by the service. Its page is still owed."""
        with writing(self._engine) as connection:
            open_ = (nights.c.night_id == night_id) & nights.c.state.in_(AT_WORK)
            connection.execute(
                sa.update(nights)
                .where(open_)
                .values(
                    state=NightState.ENDED.value,
                    outcome=NightOutcome.FAILED.value,
                    message=message,
                    ended_at=self.store.clock(),
                )
            )
        for cell in self.night(night_id).cells:
            if cell.session_id is not None:
                self.store.request_stop(cell.session_id)

    def leave_unsettled(self, night_id: str) -> None:
        """Give up its page and its messages too, as no process can bring them about; used by the service."""
        with writing(self._engine) as connection:
            ended = (nights.c.night_id == night_id) & (nights.c.state == NightState.ENDED.value)
            connection.execute(sa.update(nights).where(ended).values(settled_at=self.store.clock()))

    def save_notified(self, night_id: str, notified: tuple[str, ...]) -> None:
        """Keep what became of each notification."""
        summary = summary_to_json(replace(self.night(night_id).summary or NightSummary(), notified=notified))
        with writing(self._engine) as connection:
            connection.execute(sa.update(nights).where(nights.c.night_id == night_id).values(summary=summary))

    def _check_fence(self, night_id: str, fence: int) -> None:
        with self._engine.connect() as connection:
            newest = connection.execute(sa.select(nights.c.fence).where(nights.c.night_id == night_id)).scalar()
        if newest != fence:
            raise NightFenceLost(f"{night_id}: fence {fence} is older than {newest}")
