"""Configurations: one canonical form and hash for each point of the space, and whether a point lies in it. Pure."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping

from agent.planner.forbidden import forbidden
from agent.planner.reach import may_leave, reach
from agent.store.views import CodeState, ParamValue
from agent.task import CategoricalParameter, FloatParameter, IntParameter, Parameter, Task


def default_params(task: Task) -> dict[str, ParamValue]:
    """The default configuration: always the first trial."""
    return canonical({name: parameter.default for name, parameter in task.space.items()}, task)


def canonical(params: Mapping[str, ParamValue], task: Task) -> dict[str, ParamValue]:
    """The same point in the order of the space, with its types: `2` becomes `2.0` for a float."""
    return {name: _typed(params[name], parameter) for name, parameter in task.space.items() if name in params}


def configuration_id(params: Mapping[str, ParamValue], edited: CodeState | None = None) -> str:
    """Short hash of a canonical point: equal exactly for equal points, whatever the order of the names.

    Args:
        edited: the code that it runs, which belongs to what it is; None: the session's base.
    """
    text = json.dumps(dict(params), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    if edited is not None:
        text = f"{text}@{edited.tree}"
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def problems(params: Mapping[str, ParamValue], task: Task) -> list[str]:
    """Why a point may not be tried; empty when it may. Samplers and models are both checked by it.

    It has to lie in the space, or within reach of it where the task lets models leave it, in no forbidden direction.
    """
    found = space_problems(params, task)
    condition = forbidden(params, task) if task.forbid and not found else None
    return found if condition is None else [f"forbidden: {condition}"]


def space_problems(params: Mapping[str, ParamValue], task: Task) -> list[str]:
    """The same, but for what is forbidden: of configurations that were tried before it was."""
    found = [f"{name} is not in the space ({', '.join(task.space)})" for name in params if name not in task.space]
    for name, parameter in task.space.items():
        if name not in params:
            found.append(f"{name} has no value")
            continue
        wrong = _wrong(params[name], parameter, is_wide=may_leave(task))
        if wrong is not None:
            found.append(f"{name} = {params[name]!r}: {wrong}")
    return found


def is_finite_number(value: ParamValue) -> bool:
    """Whether it can be computed with: a whole number beyond what a float holds can not."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def size(task: Task) -> int | None:
    """How many configurations the space holds; None: uncountably many."""
    total = 1
    for parameter in task.space.values():
        match parameter:
            case FloatParameter():
                return None
            case IntParameter():
                total *= parameter.high - parameter.low + 1
            case CategoricalParameter():
                total *= len(parameter.choices)
    return total


def _typed(value: ParamValue, parameter: Parameter) -> ParamValue:
    match parameter:
        case FloatParameter() if isinstance(value, int | float) and is_finite_number(value):
            return float(value)
        case IntParameter() if isinstance(value, float) and value.is_integer():
            return int(value)
        case CategoricalParameter():
            return next((choice for choice in parameter.choices if _is_same(choice, value)), value)
        case _:
            return value


def _is_same(choice: ParamValue, value: ParamValue) -> bool:
    """`1` and `1.0` are one choice, `1` and `true` are two."""
    return choice == value and isinstance(choice, bool) == isinstance(value, bool)


def _wrong(value: ParamValue, parameter: Parameter, *, is_wide: bool) -> str | None:
    match parameter:
        case CategoricalParameter():
            is_known = any(_is_same(choice, value) for choice in parameter.choices)
            return None if is_known else f"not among {list(parameter.choices)}"
        case FloatParameter() | IntParameter():
            if not is_finite_number(value) or not isinstance(value, int | float):
                return "not a finite number"
            if isinstance(parameter, IntParameter) and value != int(value):
                return "not a whole number"
            low, high = reach(parameter) if is_wide else (parameter.low, parameter.high)
            if not low <= value <= high:
                return f"outside {low} to {high}"
            return None
