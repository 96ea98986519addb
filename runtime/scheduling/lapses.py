"""What becomes true by itself, by the passing of time or because of what was recorded before. Pure."""

from __future__ import annotations

from runtime.model.dependencies import unmet_endings
from runtime.model.events import DevicesUnreserved, JobEnded, StopOrdered
from runtime.model.state import State

from .budgeting import events_from_budgets


def events_from_lapse(state: State, now_s: float) -> list[DevicesUnreserved | JobEnded | StopOrdered]:
    """Reservations whose time is over, jobs that can never start, budgets that are used up.

    Recording them may bring more about.
    """
    return [*_unreserved(state, now_s), *unmet_endings(state), *events_from_budgets(state, now_s)]


def _unreserved(state: State, now_s: float) -> list[DevicesUnreserved]:
    return [
        DevicesUnreserved(node_id=standing.node_id, devices=lapsed, reason="its time is over")
        for standing in state.standings.values()
        if (lapsed := standing.lapsed(now_s))
    ]
