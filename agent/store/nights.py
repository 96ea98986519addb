"""`NightStore`: who begins, holds and ends the nights of sweeps. Every write is one short transaction.

A sweep has one night at a time; what a start does while there is one is decided in the transaction that begins it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import sqlalchemy as sa

from agent.store.night_ending import AT_WORK, NightEnding, NightFenceLost
from agent.store.night_reading import NightNotFound
from agent.store.processes import is_alive, started_at
from agent.store.schema import writing
from agent.store.tables import night_cells, nights
from agent.store.views import SessionState
from agent.sweeps.cells import Cell
from agent.sweeps.sweep import Sweep
from agent.sweeps.views import NightOutcome, NightState, NightView
from agent.task import Task

__all__ = ["Begun", "NightFenceLost", "NightHeld", "NightStore", "Start"]


class Start(StrEnum):
    BEGUN = "begun"
    SKIPPED = "skipped"
    """The night before still runs, and the sweep says skip; a row tells of it."""
    WAIT = "wait"
    """The night before still runs, and the sweep says queue or replace; nothing was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    start: Start
    night: NightView | None
    """The new night, or the skipped row; None: nothing was written."""
    other: NightView | None
    """The night that still runs."""


class NightHeld(Exception):
    """Another living process works on the night."""


class NightStore(NightEnding):
    def begin(self, sweep: Sweep, *, file: str, cells: Sequence[Cell], finish_by: float | None) -> Begun:
        """Begin a night, unless one of this sweep still runs."""
        with writing(self._engine) as connection:
            if connection.dialect.name == "postgresql":  # SQLite has one writer at a time
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(sa.func.hashtext(sweep.sweep))))
            mine = nights.c.sweep == sweep.sweep
            query = sa.select(nights.c.night_id).where(mine, nights.c.state.in_(AT_WORK)).limit(1)
            other_id = connection.execute(query).scalar()
            if other_id is None or sweep.overlap == "skip":
                night_id = self._insert(connection, sweep, file, finish_by, skipped_for=other_id)
                if other_id is None:
                    self._insert_cells(connection, night_id, cells)
        if other_id is None:
            return Begun(start=Start.BEGUN, night=self.night(night_id), other=None)
        start = Start.SKIPPED if sweep.overlap == "skip" else Start.WAIT
        return Begun(
            start=start,
            night=self.night(night_id) if start is Start.SKIPPED else None,
            other=self.night(other_id),
        )

    def skip(self, sweep: Sweep, *, file: str, message: str) -> NightView:
        """A row for a start that did nothing."""
        with writing(self._engine) as connection:
            night_id = self._insert(connection, sweep, file, None, skipped_for="", message=message)
        return self.night(night_id)

    def _insert(
        self,
        connection: sa.Connection,
        sweep: Sweep,
        file: str,
        finish_by: float | None,
        *,
        skipped_for: str | None,
        message: str = "",
    ) -> str:
        last = sa.select(sa.func.max(nights.c.number)).where(nights.c.sweep == sweep.sweep)
        number = 1 + (connection.execute(last).scalar() or 0)
        night_id = f"{sweep.sweep}-n{number}"
        is_skipped = skipped_for is not None
        now = self.store.clock()
        connection.execute(
            sa.insert(nights).values(
                night_id=night_id,
                sweep=sweep.sweep,
                number=number,
                file=file,
                sweep_json=sweep.model_dump_json(),
                state=(NightState.ENDED if is_skipped else NightState.RUNNING).value,
                outcome=NightOutcome.SKIPPED.value if is_skipped else None,
                message=message or (f"{skipped_for} still runs" if is_skipped else ""),
                created_at=now,
                finish_by=finish_by,
                ended_at=now if is_skipped else None,
                settled_at=now if is_skipped else None,
                fence=0,
                is_reference=False,
            )
        )
        return night_id

    def _insert_cells(self, connection: sa.Connection, night_id: str, cells: Sequence[Cell]) -> None:
        rows = [
            {
                "night_id": night_id,
                "position": position,
                "cell": cell.name,
                "task_json": cell.task.model_dump_json(),
                "is_resumed": False,
            }
            for position, cell in enumerate(cells)
        ]
        if rows:
            connection.execute(sa.insert(night_cells), rows)

    def resume_sessions(self, night_id: str) -> list[str]:
        """Add what the night before left unfinished as the first cells of this one; the ids of its sessions.

        Done once: a second call finds them there.
        """
        night = self.night(night_id)
        before = [one for one in self.nights(night.sweep) if one.number < night.number and one.outcome in _BEGUN]
        if not before or before[-1].outcome is not NightOutcome.DEADLINE:
            return []
        known = {cell.session_id for cell in night.cells}
        cells = self.night(before[-1].night_id).cells
        left = [cell for cell in cells if self._is_unfinished(cell.session_id, night_id)]
        new = [cell for cell in left if cell.session_id not in known]
        with writing(self._engine) as connection:
            for place, cell in enumerate(new):
                connection.execute(
                    sa.insert(night_cells).values(
                        night_id=night_id,
                        position=-len(new) + place,
                        cell=cell.cell,
                        task_json=cell.task_json,
                        session_id=cell.session_id,
                        is_resumed=True,
                    )
                )
        for cell in left:
            assert cell.session_id is not None
            self.store.request_resume(cell.session_id, finish_by=night.finish_by, night_id=night_id)
        return [cell.session_id for cell in left if cell.session_id is not None]

    def _is_unfinished(self, session_id: str | None, tonight: str) -> bool:
        """It was left at its hour, and was not taken up tonight already."""
        if session_id is None:
            return False
        session = self.store.session(session_id)
        return session.state is SessionState.STOPPED and session.night_id != tonight

    def runnable(self) -> list[str]:
        """Nights that a process should work on, oldest first; also those that have ended and are not settled."""
        query = sa.select(nights.c.night_id).where(nights.c.settled_at.is_(None)).order_by(nights.c.created_at)
        with self._engine.connect() as connection:
            return list(connection.execute(query).scalars())

    def is_held(self, night_id: str) -> bool:
        """Whether a living process works on it."""
        query = sa.select(nights.c.pid, nights.c.pid_started_at).where(nights.c.night_id == night_id)
        with self._engine.connect() as connection:
            row = connection.execute(query).first()
        return row is not None and is_alive(row.pid, row.pid_started_at)

    def claim(self, night_id: str, pid: int | None = None) -> int:
        """Take the night's lock for a process; the new fencing number.

        Raises:
            NightNotFound: there is none.
            NightHeld: another living process has it.
        """
        wanted = pid or os.getpid()
        with writing(self._engine) as connection:
            row = connection.execute(self._locked(night_id)).mappings().first()
            if row is None:
                raise NightNotFound(f"no night {night_id!r}")
            if row["pid"] != wanted and is_alive(row["pid"], row["pid_started_at"]):
                raise NightHeld(f"{night_id} is held by process {row['pid']}")
            fence = int(row["fence"]) + 1
            mine = nights.c.night_id == night_id
            change = {"fence": fence, "pid": wanted, "pid_started_at": started_at(wanted)}
            connection.execute(sa.update(nights).where(mine).values(**change))
        return fence

    def start_cell(self, night_id: str, position: int, fence: int) -> str:
        """The session of a cell, made when there is none; the same one however often it is asked for.

        Raises:
            NightFenceLost: another process has claimed the night.
        """
        night = self.night(night_id)
        cell = next(one for one in night.cells if one.position == position)
        if cell.session_id is not None:
            return cell.session_id
        self._check_fence(night_id, fence)
        session = self.store.create_session(
            _task_of(cell.task_json),
            request_token=f"{night_id}/{position}",
            finish_by=night.finish_by,
            night_id=night_id,
        )
        with writing(self._engine) as connection:
            mine = (night_cells.c.night_id == night_id) & (night_cells.c.position == position)
            connection.execute(sa.update(night_cells).where(mine).values(session_id=session.session_id))
        return session.session_id

    def request_stop(self, night_id: str, outcome: NightOutcome = NightOutcome.STOPPED) -> NightView:
        """Ask a running night to end early; one that has ended stays as it is.

        Raises:
            NightNotFound: there is none.
        """
        with writing(self._engine) as connection:
            running = (nights.c.night_id == night_id) & (nights.c.state == NightState.RUNNING.value)
            change = {
                "state": NightState.STOPPING.value,
                "stop_outcome": outcome.value,
                "stop_asked_at": self.store.clock(),
            }
            connection.execute(sa.update(nights).where(running).values(**change))
        return self.night(night_id)

    def stop_outcome(self, night_id: str) -> NightOutcome | None:
        """What it ends as once asked to stop; None: nobody asked."""
        query = sa.select(nights.c.stop_outcome).where(nights.c.night_id == night_id)
        with self._engine.connect() as connection:
            found = connection.execute(query).scalar()
        return None if found is None else NightOutcome(found)

    def accept(self, night_id: str) -> NightView:
        """Later nights of its sweep are compared with this one.

        Raises:
            NightNotFound: there is none.
        """
        night = self.night(night_id)
        with writing(self._engine) as connection:
            of_sweep = sa.update(nights).where(nights.c.sweep == night.sweep)
            connection.execute(of_sweep.values(is_reference=False))
            connection.execute(sa.update(nights).where(nights.c.night_id == night_id).values(is_reference=True))
        return self.night(night_id)

    def _locked(self, night_id: str) -> sa.Select[tuple[object, ...]]:
        return sa.select(nights).where(nights.c.night_id == night_id).with_for_update()


_BEGUN = tuple(outcome for outcome in NightOutcome if outcome is not NightOutcome.SKIPPED)


def _task_of(text: str) -> Task:
    return Task.model_validate_json(text)
