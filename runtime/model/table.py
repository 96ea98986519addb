"""The table of transitions as text, for the documentation and for people. Pure."""

from __future__ import annotations

from .apply import TRANSITIONS
from .names import EVENT_CLASSES


def transition_table() -> str:
    """The legal transitions as a Markdown table, in the order of the code."""
    names = {event_class: name for name, event_class in EVENT_CLASSES.items()}
    rows = ["| state | event | leads to |", "|---|---|---|"]
    for (state, event_class), targets in TRANSITIONS.items():
        rows.append(f"| {state or '(new)'} | {names[event_class]} | {', '.join(targets)} |")
    return "\n".join(rows) + "\n"
