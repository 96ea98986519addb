"""How far beyond its declared range a number may lie, where the task lets a model leave the space. Pure.

A range is the researcher's guess. Where the values point beyond it, a model or an outside agent may follow them, within
bounds that keep a slip of the pen out: ten times the width of the range beyond either end, on a logarithmic scale a
tenth of its low end to ten times its high end. A range on one side of zero stays there. Choices stay as they are: a
word that the training script does not know is no experiment.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping

from agent.store.views import ParamValue
from agent.task import FloatParameter, IntParameter, Task

FACTOR = 10
_LEAST, _MOST = -(2**53), 2**53
"""Whole numbers that every script reads as what they are."""


def may_leave(task: Task) -> bool:
    """Whether values beyond the ranges of the space may be tried at all."""
    return task.model is not None and task.model.outside_space


def reach(parameter: FloatParameter | IntParameter) -> tuple[float, float]:
    """The lowest and the highest value that may be tried, both finite; of a whole number, whole ones."""
    low, high = float(parameter.low), float(parameter.high)
    if parameter.log:
        lowest, highest = low / FACTOR, high * FACTOR
    else:
        width = high - low
        lowest = low - FACTOR * width if low < 0 else low / FACTOR
        highest = high + FACTOR * width if high > 0 else high / FACTOR
    if isinstance(parameter, IntParameter):
        return max(math.ceil(lowest), _LEAST), min(math.floor(highest), _MOST)
    return max(lowest, -sys.float_info.max), min(highest, sys.float_info.max)


def beyond(params: Mapping[str, ParamValue], task: Task) -> list[str]:
    """Parameters whose values lie beyond the ranges of the space, in words; empty: it lies in the space."""
    found = []
    for name, parameter in task.space.items():
        value = params.get(name)
        if not isinstance(parameter, FloatParameter | IntParameter) or not isinstance(value, int | float):
            continue
        if not parameter.low <= value <= parameter.high:
            found.append(f"{name}={_shown(value)} is outside {_shown(parameter.low)} to {_shown(parameter.high)}")
    return found


def _shown(value: float) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
