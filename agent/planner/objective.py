"""What a trial is worth: one number read from a curve, and what better means. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from agent.task import Direction, Objective


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The value of a trial, or why there is none: exactly one is set."""

    value: float | None = None
    note: str | None = None


def read_value(curve: Sequence[float | None], objective: Objective) -> Reading:
    """Read the value that counts from a curve in order of arrival; None stands for NaN or infinite."""
    if not curve:
        return Reading(note=f"metric {objective.metric!r} never appeared")
    finite = [value for value in curve if value is not None and math.isfinite(value)]
    if objective.read == "last":
        last = curve[-1]
        if last is None or not math.isfinite(last):
            return Reading(note=f"the last value of {objective.metric!r} is not a finite number")
        return Reading(value=last)
    if not finite:
        return Reading(note=f"no value of {objective.metric!r} is a finite number")
    return Reading(value=max(finite) if objective.direction is Direction.MAXIMIZE else min(finite))


def gain(value: float, over: float, direction: Direction) -> float:
    """How much better `value` is than `over`; negative when it is worse."""
    return value - over if direction is Direction.MAXIMIZE else over - value


def reaches(value: float, objective: Objective) -> bool:
    """Whether a value is as good as the target; False without a target."""
    return objective.target is not None and gain(value, objective.target, objective.direction) >= 0
