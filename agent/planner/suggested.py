"""What a person suggests: values as text, read by the types of the space, and whether they lie in it. Pure."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from agent.planner.configuration import canonical, default_params, space_problems
from agent.planner.reach import may_leave, reach
from agent.store.views import ParamValue
from agent.task import CategoricalParameter, FloatParameter, IntParameter, Parameter, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggested:
    """Only what was given; the rest is filled in when a trial is made of it."""

    params: dict[str, ParamValue]
    problems: tuple[str, ...]
    """Why it can not be tried, one sentence a value, with what is allowed; empty: it can."""


def read_suggestion(given: Mapping[str, str], task: Task) -> Suggested:
    """Read `name=text` pairs as points of the task's space."""
    params: dict[str, ParamValue] = {}
    found = [] if given else ["no parameter was given"]
    for name, text in given.items():
        parameter = task.space.get(name)
        if parameter is None:
            found.append(_unknown(name, task))
            continue
        value = _value(text, parameter)
        if space_problems({**default_params(task), name: value}, task):
            found.append(f"{name} = {text!r} is not allowed; allowed: {allowed(name, task)}")
        else:
            params[name] = value
    return Suggested(params=canonical(params, task), problems=tuple(found))


def allowed(name: str, task: Task) -> str:
    """What a parameter of the space may be, in words."""
    parameter = task.space[name]
    match parameter:
        case FloatParameter():
            return f"a number from {parameter.low:g} to {parameter.high:g}{_beyond(parameter, task)}"
        case IntParameter():
            return f"a whole number from {parameter.low} to {parameter.high}{_beyond(parameter, task)}"
        case CategoricalParameter():
            return ", ".join(_as_text(choice) for choice in parameter.choices)


def _beyond(parameter: FloatParameter | IntParameter, task: Task) -> str:
    if not may_leave(task):
        return ""
    low, high = reach(parameter)
    return f" (beyond that range, from {low:g} to {high:g})"


def _value(text: str, parameter: Parameter) -> ParamValue:
    if not isinstance(parameter, CategoricalParameter):
        return _number(text)
    for choice in parameter.choices:
        is_same_number = not isinstance(choice, str | bool) and choice == _number(text)
        if _as_text(choice) == text or is_same_number:
            return choice
    return text


def _number(text: str) -> ParamValue:
    """The number that it says; the text itself where it says none."""
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text


def _as_text(choice: ParamValue) -> str:
    return choice if isinstance(choice, str) else json.dumps(choice)


def _unknown(name: str, task: Task) -> str:
    close = difflib.get_close_matches(name, task.space, n=1, cutoff=0.5)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    return f"{name!r} is no parameter of this task; there are: {', '.join(task.space)}{hint}"
