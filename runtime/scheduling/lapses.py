"""What becomes true by itself, by the passing of time or because of what was recorded before. Pure."""

from __future__ import annotations

from runtime.model.dependencies import unmet_endings
from runtime.model.events import DevicesUnreserved, JobEnded, StopOrdered
from runtime.model.state import State

from .budgeting import events_from_budgets
from .finishing import events_from_hours


def events_from_lapse(state: State, now_s: float) -> list[DevicesUnreserved | JobEnded | StopOrdered]:
    """Reservations whose time is over, jobs that can never start or have to be over, budgets that are used up.

    Recording them may bring more about. At most one of them is about a job: the first that holds.
    """
    of_jobs: dict[str, JobEnded | StopOrdered] = {}
    for event in (*unmet_endings(state), *events_from_hours(state, now_s), *events_from_budgets(state, now_s)):
        of_jobs.setdefault(event.job_id, event)
    return [*_unreserved(state, now_s), *of_jobs.values()]


def _unreserved(state: State, now_s: float) -> list[DevicesUnreserved]:
    return [
        DevicesUnreserved(node_id=standing.node_id, devices=lapsed, reason="its time is over")
        for standing in state.standings.values()
        if (lapsed := standing.lapsed(now_s))
    ]
