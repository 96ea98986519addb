"""What becomes true by itself, by the passing of time or because of what was recorded before. Pure."""

from __future__ import annotations

from runtime.model.dependencies import unmet_endings
from runtime.model.events import DevicesUnreserved, JobEnded
from runtime.model.state import State


def events_from_lapse(state: State, now_s: float) -> list[DevicesUnreserved | JobEnded]:
    """Reservations whose time is over, jobs that can never start. Recording them may bring more about."""
    return [*_unreserved(state, now_s), *unmet_endings(state)]


def _unreserved(state: State, now_s: float) -> list[DevicesUnreserved]:
    return [
        DevicesUnreserved(node_id=standing.node_id, devices=lapsed, reason="its time is over")
        for standing in state.standings.values()
        if (lapsed := standing.lapsed(now_s))
    ]
