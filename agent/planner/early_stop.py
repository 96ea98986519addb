"""Whether a running trial is really behind, by its curve and those of trials that ended. Pure.

Somebody (a model) has to say so first; this only confirms. A trial is behind when its best value so far is worse than
those of three quarters of the measured trials had been at the same step, and it has gone on for long enough.

Source: the median stopping rule of Golovin et al., Google Vizier: a service for black-box optimization, KDD 2017,
section 3.2, with the upper quartile of the losses instead of their median, since ending a trial can not be undone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent.planner.curve import Point
from agent.planner.objective import gain
from agent.task import Direction

STOPPED_EARLY = "stopped_early"
"""Exit reason of a trial that was ended because it was behind: it has no value and is not repeated."""
FEWEST = 5
"""Measured trials with a curve that reached the step; with fewer nothing is ended."""
LEAST_PART = 0.2
"""Of the length of their curves, in steps, that a trial is given at least."""
_BETTER = 0.75
"""Of the measured trials, so many have to be better at that step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Behind:
    is_behind: bool
    reason: str
    """Either way, with numbers."""


def behind(curve: Sequence[Point], ended: Sequence[Sequence[Point]], direction: Direction) -> Behind:
    """How a curve stands among those of trials that were measured.

    Args:
        ended: whole curves, one of each trial.
    """
    finite = [point for point in curve if point.is_finite]
    if not finite:
        return Behind(is_behind=False, reason="its curve has no value yet")
    step = max(point.step for point in finite)
    last_steps = sorted(max((p.step for p in points if p.is_finite), default=-1) for points in ended)
    reached = [best for points in ended if (best := _best_by(points, step, direction)) is not None]
    if len(reached) < FEWEST:
        return Behind(
            is_behind=False, reason=f"only {len(reached)} of the {FEWEST} curves that it takes have come to step {step}"
        )
    usual = last_steps[len(last_steps) // 2]
    if step < LEAST_PART * usual:
        return Behind(is_behind=False, reason=f"step {step} of about {usual} is too early to say")
    own = _best_by(finite, step, direction)
    assert own is not None
    n_better = sum(1 for value in reached if gain(value, own, direction) > 0)
    text = f"at step {step} its best is {own:.5g}, and {n_better} of {len(reached)} measured trials were better by then"
    return Behind(is_behind=n_better >= _BETTER * len(reached), reason=text)


def _best_by(points: Sequence[Point], step: int, direction: Direction) -> float | None:
    """The best value of a curve up to a step; None: it did not get there, or has none."""
    values = [point.value for point in points if point.is_finite and point.value is not None and point.step <= step]
    has_arrived = any(point.step >= step for point in points if point.is_finite)
    if not values or not has_arrived:
        return None
    return max(values) if direction is Direction.MAXIMIZE else min(values)
