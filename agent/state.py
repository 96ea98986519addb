"""The graph's state: ids and small summaries, JSON types only. It is rewritten at every step, so it stays small.

Facts live in the store and in the runtime; the state says what this wake-up is about.
"""

from __future__ import annotations

from typing import TypedDict

GRAPH_VERSION = 1
"""Raised when steps are renamed or the meaning of a key changes; an older checkpoint is then not continued."""

NOT_DECIDED_S = -1.0
"""`wait_s` before a step has asked for an immediate next wake-up."""


class AgentState(TypedDict, total=False):
    graph_version: int
    session_id: str
    wake: str
    """Why the graph was woken: `start`, `timer`, `events`."""
    woken_by: list[str]
    """Ids of the jobs whose events woke it; empty: look at all."""
    n_wakes: int
    n_slots: int
    """Trials that may run at once."""
    ended: list[str]
    """Trials whose jobs have ended and whose values are not read yet."""
    phase: str
    revision: int
    ready: list[str]
    """Reviewed proposals, in the order in which they are to be launched."""
    outcome: str
    """See `Outcome`."""
    message: str
    wait_s: float
    """How long to wait for an event at most; 0: go on at once."""
    wait_metrics: list[str]
    """Metrics whose arrival is worth a wake-up."""


class Outcome:
    """What a wake-up comes to; plain strings, since the state holds JSON types."""

    GO_ON = "go_on"
    QUIET = "quiet"
    """Nothing has changed: straight to watch."""
    STOP = "stop"
    """Asked to stop in order."""
    STOPPED = "stopped"
    DONE = "done"
    FAILED = "failed"
