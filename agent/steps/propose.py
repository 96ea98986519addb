"""Propose: keep proposals ready, a little more than there is room for, so that a slot never waits for a thought.

Slots that wanted work leaves empty get idle work.
"""

from __future__ import annotations

from dataclasses import replace

from agent.deps import Deps
from agent.planner.filler import idle_work
from agent.planner.hour import fits
from agent.planner.plan import n_open, next_work
from agent.planner.portfolio import escalations_of
from agent.planner.proposers.again import asked_again
from agent.planner.proposers.outside import OUTSIDE, Outside, refused_from_outside, suggestions_behind
from agent.planner.proposers.person import answers, is_waiting, refusals
from agent.planner.proposers.protocol import Proposer
from agent.planner.repetition import Step
from agent.planner.worth import worth_of
from agent.state import AgentState
from agent.steps.gating import Shown, seen_history
from agent.steps.leaving import hour_of
from agent.steps.opinions import take_up_opinions
from agent.steps.spending import spend_so_far
from agent.steps.thinking import take_up_thoughts
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
    """Slots for which nothing is in flight and nothing is ready; what waits for a person is not ready."""
    history = deps.book.history()
    n_ready = sum(1 for trial in history.ready if trial.trial_id not in deps.memory.waiting)
    return max(deps.memory.n_slots - len(history.in_flight) - n_ready, 0)


def propose(state: AgentState, deps: Deps) -> AgentState:
    deps.memory.newest_suggestion = deps.record.newest_suggestion()
    if deps.is_paused or not fits(deps.task, deps.book.history(), hour_of(deps), deps.memory.n_slots):
        return {}
    if deps.memory.plan.search_closed is None and not deps.is_taken_over:
        for proposer in deps.memory.ahead:
            proposer.tell(seen_history(deps))
        take_up_thoughts(deps)
        take_up_opinions(deps)
    asks_outside = OUTSIDE in deps.task.search.use
    while True:
        _take_up_ideas(deps)
        history = deps.book.history()
        n_ready = sum(1 for t in history.ready if not t.is_idle_work and t.trial_id not in deps.memory.waiting)
        n = n_free(deps) + N_AHEAD - n_ready
        proposals = next_work(deps.memory.plan, deps.task, history, n, Shown(_who(deps), deps.memory.gates))
        _escalate(deps)
        if not proposals:
            break
        lines = [Line(step="propose", text=f"{p.suggested_by} suggests {p.purpose}: {p.why}") for p in proposals]
        worth = {purpose: worth_of(deps.task, history, purpose) for purpose in {p.purpose for p in proposals}}
        ideas = deps.record.suggestions() if asks_outside else []
        numbers = suggestions_behind(proposals, ideas, deps.task, history, deps.edits) if asks_outside else ()
        deps.book.propose([p if p.worth else replace(p, worth=worth[p.purpose]) for p in proposals], lines, numbers)
    _use_idle_slots(deps)
    is_exhausted = bool(deps.memory.exhausted) and deps.memory.plan.search_closed is None
    return {"wait_s": 0.0} if is_exhausted else {}


def _who(deps: Deps) -> Proposer:
    """Who suggests: while a person has taken over, outside agents alone, beside people."""
    return Outside(deps.task, deps.record.suggestions, deps.edits) if deps.is_taken_over else deps.search


def _use_idle_slots(deps: Deps) -> None:
    n = n_idle(deps)
    if n < 1 or deps.memory.exhausted or deps.is_taken_over:
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


def _take_up_ideas(deps: Deps) -> None:
    """People's ideas become trials; what can not be tried gets a note that says why, an outside agent's idea too."""
    ideas = deps.record.suggestions()
    closed = deps.memory.plan.search_closed
    if closed is not None:
        _refuse(deps, {idea.suggestion_id: f"the search is over: {closed}" for idea in ideas if is_waiting(idea)})
        return
    if any(is_waiting(idea) for idea in ideas):
        history = deps.book.history()
        of_people, room = [i for i in ideas if i.arm is None], n_open(deps.task, history)
        found = [*answers(of_people, deps.task, history, room, deps.edits), *asked_again(ideas, deps.task, history)]
        _refuse(deps, refusals(found) | refused_from_outside(ideas, deps.task, history, deps.edits))
        taken = [(one.suggestion_id, one.proposal) for one in found if one.proposal is not None]
        lines = [
            Line(step="propose", text=f"suggestion {number} of {p.suggested_by} comes first: {p.why}")
            for number, p in taken
        ]
        deps.book.propose([p for _, p in taken], lines, [number for number, _ in taken])
        ideas = deps.record.suggestions()
    deps.memory.suggested = frozenset(i.trial_id for i in ideas if i.trial_id is not None and i.is_of_person)


def _refuse(deps: Deps, notes: dict[int, str]) -> None:
    lines = [Line(step="propose", text=f"suggestion {number} is not tried: {note}") for number, note in notes.items()]
    deps.book.refuse(list(notes.items()), lines)


def _escalate(deps: Deps) -> None:
    """Say once what is done about a search that brings nothing new, and remember when it is at its end."""
    if deps.is_taken_over:
        return
    found = escalations_of(deps.search)
    deps.memory.exhausted = next((e.reason for e in found if e.step is Step.STOP), None)
    new = [e for e in found if (e.step.value, e.surface) not in deps.memory.escalated]
    deps.memory.escalated |= {(e.step.value, e.surface) for e in new}
    deps.record.say([Line(step="propose", text=f"{e.step}: {e.reason}") for e in new])
