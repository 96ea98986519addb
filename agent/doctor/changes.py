"""Which parameter of a task a diagnosis asks to change, and to what. Pure.

Only what is plain: less of what fills memory, as the runtime suggests for a job that ran out of it; a lower learning
rate where values became NaN or infinite. A change always lies in the space of the task.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from agent.doctor.diagnosis import FailureClass
from agent.planner.configuration import canonical, problems
from agent.store.views import ParamValue
from agent.task import CategoricalParameter, FloatParameter, IntParameter, Parameter, Task

MEMORY_FACTOR = 0.5
LEARNING_RATE_FACTOR = 0.3
"""Half a decade: two tries make one."""
_LEARNING_RATE = re.compile(
    r"(^|[_.])((max|peak|base|init|initial)_?)?(lr|learning_?rate|step_?size|eta)(_?(max|peak|base|init|0))?$",
    re.IGNORECASE,
)
_LEAST = 0.95
"""A change by less than so much of the value changes nothing."""


def change_for(
    failure: FailureClass, params: Mapping[str, ParamValue], task: Task, *, fills_memory: str | None
) -> dict[str, ParamValue] | None:
    """The parameters that change, with their new values; None: none that is plain, or it is at its end already.

    Args:
        fills_memory: parameter that the runtime suggests to make smaller, of a job that ran out of memory.
    """
    match failure:
        case FailureClass.OUT_OF_DEVICE_MEMORY | FailureClass.OUT_OF_MEMORY:
            names, factor = [fills_memory] if fills_memory is not None else [], MEMORY_FACTOR
        case FailureClass.DIVERGED:
            names, factor = [name for name in task.space if _LEARNING_RATE.search(name)], LEARNING_RATE_FACTOR
        case _:
            return None
    changed = {}
    for name in names:
        smaller = None if name not in task.space else _smaller(params[name], task.space[name], factor)
        if smaller is not None:
            changed[name] = smaller
    whole = {**params, **changed}
    if not changed or problems(whole, task):
        return None
    return {name: value for name, value in canonical(whole, task).items() if name in changed}


def _smaller(value: ParamValue, parameter: Parameter, factor: float) -> ParamValue:
    """The value times the factor, or what is nearest to it in the space; None: there is nothing smaller."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        return None
    wanted = value * factor
    match parameter:
        case FloatParameter():
            new: float = max(wanted, parameter.low)
        case IntParameter():
            new = max(int(wanted), parameter.low)
        case CategoricalParameter():
            numbers = [
                c for c in parameter.choices if isinstance(c, int | float) and not isinstance(c, bool) and 0 < c < value
            ]
            enough = [c for c in numbers if c <= wanted]
            if not numbers:
                return None
            new = max(enough) if enough else min(numbers)
    return new if new < _LEAST * value else None
