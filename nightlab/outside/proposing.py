"""Trials proposed from outside: each is checked at once, kept as a row, and answered by the session later."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from agent.coding.suggested import why_not
from agent.planner.configuration import canonical, default_params, problems
from agent.planner.proposers.outside import OUTSIDE, waiting_from_outside
from agent.planner.suggested import allowed
from agent.store.store import AgentStore
from agent.store.views import Expected, ParamValue, SessionState, SuggestedEdit, SuggestionView
from agent.task import Task

MAX_WAITING = 50
"""Proposals of all outside agents that may wait in one session; more would be thought of without the newest values."""
MAX_REASON = 500
"""Characters of a reason."""
_OVER = (SessionState.FINISHED, SessionState.FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """What became of one proposal at once: exactly one of the two is set."""

    proposal: int | None = None
    """Its number: whether it became a trial is told under it later."""
    refused: str | None = None
    """Why not, and what would be taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposed:
    """A trial that an outside agent wants; nothing of it is believed."""

    params: dict[str, ParamValue]
    """Of the task's space; what is left out is as in the best configuration so far."""
    why: str
    probability: float | None = None
    """0 to 1: that it beats the default configuration."""
    effect: float | None = None
    """Expected gain over the default, in the metric's units."""
    edit: SuggestedEdit | None = None
    """A change of the code; None: parameters alone."""


def receive(store: AgentStore, home: Path, session_id: str, proposals: list[Proposed], *, by: str) -> list[Received]:
    """Keep what can be tried, in the order given; say of the rest why not.

    Args:
        home: where the session keeps its code; it is read alone.

    Raises:
        SessionNotFound: there is no such session.
    """
    session = store.session(session_id)
    task = Task.model_validate_json(session.task_json)
    known = store.suggestions(session_id)
    n_waiting = len(waiting_from_outside(known))
    closed = _closed(task, session.state)
    found = []
    for one in proposals:
        refused = closed or _objection(one, task)
        if refused is None and one.edit is not None:
            refused = why_not(store, home, session_id, one.edit)
        if refused is None and n_waiting >= MAX_WAITING:
            refused = f"{n_waiting} proposals wait already; wait until some of them were tried"
        if refused is not None:
            found.append(Received(refused=refused))
            continue
        n_waiting += 1
        found.append(Received(proposal=_keep(store, session_id, one, by=by).suggestion_id))
    return found


def _keep(store: AgentStore, session_id: str, one: Proposed, *, by: str) -> SuggestionView:
    expected = None if one.probability is None else Expected(probability=one.probability, effect=one.effect)
    return store.suggest(
        session_id,
        one.params,
        why=one.why.strip(),
        suggested_by=by,
        arm=OUTSIDE,
        expected=expected,
        edit=one.edit,
    )


def _closed(task: Task, state: SessionState) -> str | None:
    if OUTSIDE not in task.search.use:
        return "this session takes nothing from outside: its task has no `outside` in search.use"
    return f"the session is {state}: it tries nothing more" if state in _OVER else None


def _objection(one: Proposed, task: Task) -> str | None:
    if not one.params and one.edit is None:
        return f"no parameter is given; the space has: {', '.join(task.space)}"
    if not one.why.strip():
        return "the reason is missing: say in a sentence why it may help"
    if len(one.why) > MAX_REASON:
        return f"the reason has {len(one.why)} characters; {MAX_REASON} are the most"
    if one.probability is not None and not 0 <= one.probability <= 1:
        return f"probability is {one.probability}; it must lie between 0 and 1"
    if (one.effect is not None and abs(one.effect) == float("inf")) or one.effect != one.effect:
        return "effect must be a finite number, in the units of the metric"
    unknown = [name for name in one.params if name not in task.space]
    if unknown:
        return f"no such parameter: {', '.join(unknown)}; the space has: {', '.join(task.space)}"
    wrong = problems({**default_params(task), **canonical(one.params, task)}, task)
    if wrong:
        ranges = "; ".join(f"{name}: {allowed(name, task)}" for name in one.params)
        return f"{'; '.join(wrong)}. Allowed: {ranges}"
    return None
