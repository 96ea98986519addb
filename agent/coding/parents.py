"""Whose code an edit begins from: mostly the leader's, sometimes another good one's, so that a tree grows. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from agent.planner.history import History
from agent.planner.ranking import best_params, ranking
from agent.store.views import CodeState, ParamValue, TrialView
from agent.task import Task

BASE = "base"
"""How the session's own code is named where a trial could be."""
_WEIGHTS = (12, 3, 2, 1)
"""Of the best code and those after it, by which they are drawn; the base has the last one at least."""
_NAMED = 6
"""Trials that a refusal names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parent:
    name: str
    """`base`, or a trial's id."""
    params: dict[str, ParamValue]
    code: CodeState | None
    """None: the session's base."""
    value: float | None = None

    @property
    def trial_id(self) -> str | None:
        """The trial whose edited code it is; None: the base."""
        return None if self.code is None else self.name


def drawn(task: Task, history: History, turn: int) -> Parent:
    """The one that is worked on unless another one is named; the same for the same seed and turn."""
    found = _of_rank(task, history)
    weights = [_WEIGHTS[min(place, len(_WEIGHTS) - 1)] for place in range(len(found))]
    digits = hashlib.sha256(f"{task.seeds.search}/{turn}".encode()).hexdigest()[:12]
    at = int(digits, 16) / 16**12 * sum(weights)
    for parent, weight in zip(found, weights, strict=True):
        at -= weight
        if at < 0:
            return parent
    return found[-1]


def named(name: str, task: Task, history: History) -> Parent | str:
    """The parent that was meant, or why there is none, in a sentence.

    Args:
        name: `base` or the id of a trial that has ended, one without a value too: it may be mended.
    """
    wanted = name.strip()
    if wanted == BASE:
        return _base(task, history)
    trial = next((one for one in history.trials if one.trial_id == wanted), None)
    if trial is not None and trial.is_ended:
        return _of(trial)
    known = ", ".join([BASE, *(parent.name for parent in _of_rank(task, history)[:_NAMED] if parent.name != BASE)])
    if trial is not None:
        return f"{wanted[:40]} has not ended; begin from one that has, such as {known}"
    return f"there is no trial {wanted[:40]!r}; name one of these as parent, or none: {known}"


def _of_rank(task: Task, history: History) -> Sequence[Parent]:
    """The best trial of each different code, the best first, as many as are drawn from; the base is among them."""
    first: dict[str, TrialView] = {}
    for trial in history.search:
        if trial.is_ended:
            first.setdefault(trial.configuration, trial)
    base = _base(task, history)
    found: dict[str | None, Parent] = {}
    for standing in ranking(task, history).standings:
        known = first.get(standing.configuration)
        if known is not None:
            code = known.facts.edited
            found.setdefault(None if code is None else code.tree, base if code is None else _of(known))
    best = list(found.values())[: len(_WEIGHTS)]
    return best if base in best else [*best[: len(_WEIGHTS) - 1], base]


def _of(trial: TrialView) -> Parent:
    return Parent(name=trial.trial_id, params=dict(trial.params), code=trial.facts.edited, value=trial.value)


def _base(task: Task, history: History) -> Parent:
    """The unchanged code, with the best parameters that are known for it."""
    own = history.of_base()
    leader = ranking(task, own).leader
    return Parent(name=BASE, params=best_params(task, own), code=None, value=None if leader is None else leader.mean)
