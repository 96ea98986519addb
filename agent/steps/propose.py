"""Propose: keep proposals ready, a little more than there is room for, so that a slot never waits for a thought.

Slots that wanted work leaves empty get idle work.
"""

from __future__ import annotations

from dataclasses import replace

from agent.deps import Deps
from agent.planner.filler import idle_work
from agent.planner.plan import next_work
from agent.planner.worth import worth_of
from agent.state import AgentState
from agent.steps.spending import spend_so_far
from agent.store.fenced import Line

N_AHEAD = 1
"""Proposals kept ready beyond what can be launched now. Few: each is made without the newest values."""
N_QUEUED = 1
"""Jobs in flight beyond the slots: the scheduler starts the waiting one in the instant in which a slot frees."""


def n_free(deps: Deps) -> int:
    """How many more wanted trials may be submitted now. Idle work is not in their way: it gives way to them."""
    n_wanted = sum(1 for trial in deps.book.history().in_flight if not trial.is_idle_work)
    return max(deps.memory.n_slots + N_QUEUED - n_wanted, 0)


def n_idle(deps: Deps) -> int:
    """Slots for which nothing is in flight and nothing is ready."""
    history = deps.book.history()
    return max(deps.memory.n_slots - len(history.in_flight) - len(history.ready), 0)


def propose(state: AgentState, deps: Deps) -> AgentState:
    if deps.memory.plan.search_closed is None:
        for proposer in deps.memory.ahead:
            proposer.tell(deps.book.history())
    while True:
        history = deps.book.history()
        n_ready = sum(1 for trial in history.ready if not trial.is_idle_work)
        n = n_free(deps) + N_AHEAD - n_ready
        proposals = next_work(deps.memory.plan, deps.task, history, n, deps.search)
        if not proposals:
            break
        lines = [Line(step="propose", text=f"{p.suggested_by} suggests {p.purpose}: {p.why}") for p in proposals]
        worth = {purpose: worth_of(deps.task, history, purpose) for purpose in {p.purpose for p in proposals}}
        deps.book.propose([p if p.worth else replace(p, worth=worth[p.purpose]) for p in proposals], lines)
    _use_idle_slots(deps)
    return {}


def _use_idle_slots(deps: Deps) -> None:
    n = n_idle(deps)
    if n < 1:
        return
    work = idle_work(
        deps.memory.plan,
        deps.task,
        deps.book.history(),
        n,
        spend=spend_so_far(deps),
        explorer=deps.explorer,
    )
    deps.book.propose(work, [Line(step="propose", text=p.why) for p in work])
