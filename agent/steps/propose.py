"""Propose: keep proposals ready, a little more than there is room for, so that a slot never waits for a thought."""

from __future__ import annotations

from agent.deps import Deps
from agent.planner.plan import next_work
from agent.state import AgentState
from agent.store.fenced import Line

N_AHEAD = 1
"""Proposals kept ready beyond what can be launched now. Few: each is made without the newest values."""
N_QUEUED = 1
"""Jobs in flight beyond the slots: the scheduler starts the waiting one in the instant in which a slot frees."""


def n_free(deps: Deps) -> int:
    """How many more trials may be submitted now."""
    return max(deps.memory.n_slots + N_QUEUED - len(deps.book.history().in_flight), 0)


def propose(state: AgentState, deps: Deps) -> AgentState:
    if deps.memory.plan.search_closed is None:
        for proposer in deps.memory.ahead:
            proposer.tell(deps.book.history())
    while True:
        history = deps.book.history()
        n = n_free(deps) + N_AHEAD - len(history.ready)
        proposals = next_work(deps.memory.plan, deps.task, history, n, deps.search)
        if not proposals:
            return {}
        lines = [Line(step="propose", text=f"{p.suggested_by} suggests {p.purpose}: {p.why}") for p in proposals]
        deps.book.propose(proposals, lines)
