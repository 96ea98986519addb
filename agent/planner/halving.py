"""Asynchronous successive halving, the kind that stops: weak trials end at milestones of their curves. Pure.

At each milestone a trial goes on when its value there is among the best 1/factor of all that have passed it. Nobody
waits for others: with fewer than `factor` trials at a milestone, everybody goes on.

Source: Li et al., A System for Massively Parallel Hyperparameter Tuning, MLSys 2020, in its stopping variant.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from agent.planner.curve import Point
from agent.planner.objective import gain
from agent.task import Direction, Objective
from agent.task_fidelity import Halving


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Why a trial ends here."""

    step: int
    """The milestone."""
    rank: int
    """1: the best of those that have passed it."""
    n: int
    """Trials that have passed it, this one included."""

    @property
    def words(self) -> str:
        return f"at step {self.step} it is {self.rank} of {self.n}"


def milestones(halving: Halving, last_step: int) -> Iterator[int]:
    """Steps at which trials are compared, all before `last_step`, in order."""
    at = halving.first
    while at < last_step:
        yield math.ceil(at)
        at *= halving.factor


def reached(curve: Sequence[Point], objective: Objective, steps: Sequence[int]) -> dict[int, float]:
    """What a curve was worth when it passed each milestone; worst of all where it was not finite. In order of steps."""
    worst = -math.inf if objective.direction is Direction.MAXIMIZE else math.inf
    found: dict[int, float] = {}
    best = worst
    waiting = list(steps)
    for point in curve:
        value = point.value if point.is_finite and point.value is not None else worst
        best = max(best, value) if objective.direction is Direction.MAXIMIZE else min(best, value)
        while waiting and point.step >= waiting[0]:
            found[waiting.pop(0)] = best if objective.read == "best" else value
    return found


def stop(
    own: Mapping[int, float], others: Sequence[Mapping[int, float]], halving: Halving, direction: Direction
) -> Stop | None:
    """Whether a trial ends, by the milestones that it has passed; None: it goes on.

    Args:
        own: milestones that it has passed, and its value there.
        others: those of all other trials, running, ended and stopped ones.
    """
    for step, value in own.items():
        values = [passed[step] for passed in others if step in passed]
        n = len(values) + 1
        if n < halving.factor:
            continue
        rank = 1 + sum(1 for other in values if gain(other, value, direction) > 0)
        if rank > max(n / halving.factor, 1.0):
            return Stop(step=step, rank=rank, n=n)
    return None
