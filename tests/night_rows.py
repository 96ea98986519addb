"""Nights of the sample sweep as rows of a store."""

from __future__ import annotations

from collections.abc import Iterable

import sqlalchemy as sa

from agent.store.schema import writing
from agent.store.store import AgentStore
from agent.store.tables import night_cells, nights
from agent.sweeps.summary_text import summary_to_json
from agent.sweeps.views import NightView


def put_nights(store: AgentStore, found: Iterable[NightView]) -> None:
    """With their cells, as they are."""
    with writing(store.engine) as connection:
        for night in found:
            connection.execute(sa.insert(nights).values(**_row(night)))
            for cell in night.cells:
                connection.execute(
                    sa.insert(night_cells).values(
                        night_id=cell.night_id,
                        position=cell.position,
                        cell=cell.cell,
                        task_json=cell.task_json,
                        session_id=cell.session_id,
                        is_resumed=cell.is_resumed,
                    )
                )


def _row(night: NightView) -> dict[str, object]:
    names = (
        "night_id sweep number file sweep_json message created_at finish_by ended_at pid "
        "report_html report_markdown is_reference stop_asked_at settled_at"
    )
    return {
        **{name: getattr(night, name) for name in names.split()},
        "state": night.state.value,
        "outcome": None if night.outcome is None else night.outcome.value,
        "fence": 0,
        "summary": None if night.summary is None else summary_to_json(night.summary),
    }
