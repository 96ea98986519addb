"""What becomes true by the passing of time alone. Pure."""

from __future__ import annotations

from runtime.model.events import DevicesUnreserved
from runtime.model.state import State


def events_from_lapse(state: State, now_s: float) -> list[DevicesUnreserved]:
    """Reservations whose time is over."""
    return [
        DevicesUnreserved(node_id=standing.node_id, devices=lapsed, reason="its time is over")
        for standing in state.standings.values()
        if (lapsed := standing.lapsed(now_s))
    ]
