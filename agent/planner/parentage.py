"""What the last change of the chosen code brings by itself: its runs beside those of the code it was made from. Pure.

Both sides have the same parameters and the same fresh seeds, the first ones alone: a number that is fixed before the
first value. So the interval is an ordinary one, and it is no claim: nothing is accepted by it, and it takes nothing of
the session's error budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent.planner.configuration import configuration_id, default_params
from agent.planner.history import History, Proposal
from agent.planner.pairing import paired
from agent.planner.proposers.replicator import Arm, Replicator
from agent.planner.statistics import paired_interval
from agent.store.views import CodeState, Interval, TrialView
from agent.task import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Parentage:
    """Of a chosen configuration with edited code."""

    first: TrialView
    """The trial that tried it first."""
    edited: CodeState
    """Its code."""
    parent: TrialView | None
    """Whose code it was made from; None: the session's base."""
    arm: Arm | None
    """That code with the chosen one's parameters; None: this is the default, whose pairs are the session's claim."""


def parentage(task: Task, history: History, chosen: str | None) -> Parentage | None:
    """None: nothing is chosen, or it runs the base code."""
    first = next((trial for trial in history.search if trial.configuration == chosen), None)
    if first is None or first.facts.edited is None:
        return None
    edited = first.facts.edited
    parent = next((t for t in history.trials if t.trial_id == edited.parent and t.facts.edited is not None), None)
    code = None if parent is None else parent.facts.edited
    name = configuration_id(first.params, code)
    is_default = name == configuration_id(default_params(task))
    arm = None if is_default else Arm(name="parent", params=dict(first.params), configuration=name, edited=code)
    return Parentage(first=first, edited=edited, parent=parent, arm=arm)


def parent_work(task: Task, history: History, chosen: str | None, seeds: Sequence[int], n: int) -> list[Proposal]:
    """At most `n` runs of the parent's code that are missing on the chosen one's fresh seeds."""
    found = parentage(task, history, chosen)
    if found is None or found.arm is None:
        return []
    return Replicator(task, found.arm, seeds[: task.seeds.fresh], None).ask(history, n)


def parent_runs(task: Task, history: History, chosen: str | None, seeds: Sequence[int]) -> set[tuple[str, int]]:
    """Configuration and seed of every run of the parent's code that is wanted."""
    found = parentage(task, history, chosen)
    return (
        set()
        if found is None or found.arm is None
        else {(found.arm.configuration, seed) for seed in seeds[: task.seeds.fresh]}
    )


def over_parent(task: Task, history: History, found: Parentage, seeds: Sequence[int]) -> Interval | None:
    """The chosen one minus its parent's code, in the metric's units; None: that is the claim, or pairs are missing."""
    if found.arm is None:
        return None
    own, other = found.first.configuration, found.arm.configuration
    return paired_interval(paired(task, history, own, other, seeds[: task.seeds.fresh], is_over=True).values)
