"""`NightReading`: what everybody may read of the nights of sweeps, and where their reports are."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

import sqlalchemy as sa

from agent.store.schema import writing
from agent.store.store import AgentStore
from agent.store.tables import night_cells, nights
from agent.store.views import SessionView
from agent.sweeps.summary_text import summary_from_json
from agent.sweeps.views import CellView, NightOutcome, NightState, NightView


class NightNotFound(Exception):
    """There is no night or sweep of that name; the message says which there are."""


class NightReading:
    def __init__(self, store: AgentStore) -> None:
        self._engine = store.engine

    def sweeps(self) -> list[str]:
        """Names of those that have a night, in the order of their letters."""
        with self._engine.connect() as connection:
            return list(connection.execute(sa.select(nights.c.sweep).distinct().order_by(nights.c.sweep)).scalars())

    def nights(self, sweep: str) -> list[NightView]:
        """Of one sweep, oldest first, skipped ones included; without their cells."""
        query = sa.select(nights).where(nights.c.sweep == sweep).order_by(nights.c.number)
        with self._engine.connect() as connection:
            return [night_view(row) for row in connection.execute(query).mappings()]

    def night(self, night_id: str) -> NightView:
        """With its cells.

        Raises:
            NightNotFound: there is none.
        """
        cells = sa.select(night_cells).where(night_cells.c.night_id == night_id).order_by(night_cells.c.position)
        with self._engine.connect() as connection:
            row = connection.execute(sa.select(nights).where(nights.c.night_id == night_id)).mappings().first()
            if row is not None:
                return night_view(row, [_cell_view(cell) for cell in connection.execute(cells).mappings()])
        raise NightNotFound(f"no night {night_id!r}{self._hint(night_id)}")

    def why_not_resumed(self, session: SessionView) -> str | None:
        """Why a person may not resume a session now; None: they may.

        A night ends its sessions by its hour; one that a person resumed would have no hour any more.
        """
        night_id = session.night_id
        if night_id is None or self.night(night_id).ended_at is not None:
            return None
        whose = f"{session.session_id} belongs to {night_id}, which still runs"
        return f"{whose}; resume it after the night, or end that first: nightlab sweep stop {night_id}"

    def named(self, name: str) -> NightView:
        """A night by its id, or the newest night of the sweep of that name.

        Raises:
            NightNotFound: there is neither.
        """
        query = sa.select(nights.c.night_id).where(nights.c.sweep == name).order_by(nights.c.number.desc()).limit(1)
        with self._engine.connect() as connection:
            newest = connection.execute(query).scalar()
        if newest is not None:
            return self.night(newest)
        try:
            return self.night(name)
        except NightNotFound:
            raise NightNotFound(f"no sweep and no night {name!r}{self._hint(name)}") from None

    def save_reports(self, night_id: str, html: str, markdown: str) -> None:
        with writing(self._engine) as connection:
            mine = nights.c.night_id == night_id
            connection.execute(sa.update(nights).where(mine).values(report_html=html, report_markdown=markdown))

    def _hint(self, name: str) -> str:
        known = self.sweeps()
        with self._engine.connect() as connection:
            ids = list(connection.execute(sa.select(nights.c.night_id)).scalars())
        close = difflib.get_close_matches(name, [*known, *ids], n=1, cutoff=0.6)
        if close:
            return f"; did you mean {close[0]!r}?"
        return f"; sweeps that have run: {', '.join(known)}" if known else "; no sweep has run yet"


def night_view(row: sa.RowMapping, cells: Sequence[CellView] = ()) -> NightView:
    return NightView(
        night_id=row["night_id"],
        sweep=row["sweep"],
        number=row["number"],
        file=row["file"],
        sweep_json=row["sweep_json"],
        state=NightState(row["state"]),
        outcome=None if row["outcome"] is None else NightOutcome(row["outcome"]),
        message=row["message"],
        created_at=row["created_at"],
        finish_by=row["finish_by"],
        ended_at=row["ended_at"],
        pid=row["pid"],
        report_html=row["report_html"],
        report_markdown=row["report_markdown"],
        summary=summary_from_json(row["summary"]),
        is_reference=row["is_reference"],
        stop_asked_at=row["stop_asked_at"],
        settled_at=row["settled_at"],
        cells=tuple(cells),
    )


def _cell_view(row: sa.RowMapping) -> CellView:
    return CellView(
        night_id=row["night_id"],
        position=row["position"],
        cell=row["cell"],
        task_json=row["task_json"],
        session_id=row["session_id"],
        is_resumed=row["is_resumed"],
    )
