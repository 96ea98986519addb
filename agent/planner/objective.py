"""What a trial is worth: one number read from a curve, and what better means. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from agent.task import Direction, Objective


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The value of a trial, or why there is none."""

    value: float | None = None
    note: str | None = None
    """Why there is no value; with one, what should be known about it."""


def read_value(curve: Sequence[float | None], objective: Objective) -> Reading:
    """Read the value that counts from a curve in order of arrival; None stands for NaN or infinite.

    Invalid, whatever the direction: nothing logged, nothing finite, a last value that counts and is not finite, a value
    outside `objective.valid`.
    """
    if not curve:
        return Reading(note=f"metric {objective.metric!r} never appeared")
    finite = [value for value in curve if value is not None and math.isfinite(value)]
    n_lost = len(curve) - len(finite)
    if objective.read == "last":
        last = curve[-1]
        if last is None or not math.isfinite(last):
            return Reading(note=f"the last value of {objective.metric!r} is not a finite number")
        value = last
    elif not finite:
        return Reading(note=f"no value of {objective.metric!r} is a finite number")
    else:
        value = max(finite) if objective.direction is Direction.MAXIMIZE else min(finite)
    outside = _outside(value, objective)
    if outside is not None:
        return Reading(note=outside)
    return Reading(value=value, note=_lost(n_lost, len(curve), objective) if n_lost else None)


def _outside(value: float, objective: Objective) -> str | None:
    low, high = objective.valid.low, objective.valid.high
    if (low is None or value >= low) and (high is None or value <= high):
        return None
    limits = f"{'any' if low is None else f'{low:g}'} to {'any' if high is None else f'{high:g}'}"
    return f"{objective.metric} = {value:.6g} lies outside objective.valid ({limits})"


def _lost(n_lost: int, n: int, objective: Objective) -> str:
    return f"{n_lost} of {n} values of {objective.metric!r} are not finite numbers; they do not count"


def gain(value: float, over: float, direction: Direction) -> float:
    """How much better `value` is than `over`; negative when it is worse."""
    return value - over if direction is Direction.MAXIMIZE else over - value


def reaches(value: float, objective: Objective) -> bool:
    """Whether a value is as good as the target; False without a target."""
    return objective.target is not None and gain(value, objective.target, objective.direction) >= 0
