"""Directions that are not to be taken: conditions on parameters, in a small grammar of its own. Pure.

    condition  := comparison ("and" comparison)*
    comparison := NAME ("<" | "<=" | ">" | ">=" | "=" | "!=") VALUE

A value is a number, or a choice of the parameter, in quotation marks where it has blanks or signs in it. What all
comparisons of one condition hold for is not tried.
"""

from __future__ import annotations

import difflib
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from agent.store.views import ParamValue
from agent.task import CategoricalParameter, IntParameter, Parameter, Task

MOST_CHARACTERS = 500
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "!=": operator.ne,
}
_FORM = "write it as: lr > 0.1, or: optimizer = sgd and lr > 0.1"
_COMPARISON = re.compile(
    r"""\s*(?P<name>[^\s<>=!"']+)\s*(?P<sign><=|>=|==|!=|<|>|=)\s*(?P<value>"[^"]*"|'[^']*'|[^\s"'<>=!]+)\s*"""
)
_AND = re.compile(r"and\b\s*", re.IGNORECASE)
_BARE = re.compile(r"""[^\s"'<>=!]+""")
"""A value that needs no quotation marks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    name: str
    sign: str
    text: str
    """The value as it was written, without quotation marks."""


@lru_cache(maxsize=512)
def parsed(text: str) -> tuple[Comparison, ...]:
    """The comparisons of a condition, in its order.

    Raises:
        ValueError: it is none; the message says where and shows the form.
    """
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"{len(text)} characters are more than a condition may have ({MOST_CHARACTERS})")
    found: list[Comparison] = []
    at = 0
    while True:
        match = _COMPARISON.match(text, at)
        if match is None:
            rest = text[at : at + 40].strip()
            raise ValueError(f"no comparison at {rest!r}; {_FORM}" if rest else f"a comparison is missing; {_FORM}")
        sign = "=" if match["sign"] == "==" else match["sign"]
        value = match["value"]
        text_of_value = value[1:-1] if value[0] in "\"'" else value
        found.append(Comparison(name=match["name"], sign=sign, text=text_of_value))
        at = match.end()
        if at == len(text):
            return tuple(found)
        joined = _AND.match(text, at)
        if joined is None:
            raise ValueError(f"only `and` joins comparisons, not {text[at : at + 40]!r}; {_FORM}")
        at = joined.end()


def why_no_condition(text: str, task: Task) -> str | None:
    """What is wrong with a condition for this task; None: it can be used."""
    try:
        comparisons = parsed(text)
    except ValueError as error:
        return str(error)
    for one in comparisons:
        parameter = task.space.get(one.name)
        if parameter is None:
            close = difflib.get_close_matches(one.name, task.space, n=1, cutoff=0.5)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            return f"{one.name!r} is no parameter of this task; there are: {', '.join(task.space)}{hint}"
        if isinstance(parameter, CategoricalParameter):
            if one.sign not in ("=", "!="):
                return f"{one.name} has choices, which can be = or != alone, not {one.sign}"
            if _value(one.text, parameter) is None:
                choices = ", ".join(map(str, parameter.choices))
                return f"{one.text!r} is no choice of {one.name}; there are: {choices}"
        elif _value(one.text, parameter) is None:
            return f"{one.name} {one.sign} {one.text!r}: not a finite number"
    default = {name: parameter.default for name, parameter in task.space.items()}
    if _holds(comparisons, default, task.space):
        return f"it covers the default configuration ({_shown(comparisons)}), which everything is compared with"
    return None


def forbidden(params: Mapping[str, ParamValue], task: Task) -> str | None:
    """The first condition of the task that covers a configuration, in its canonical words; None: none does."""
    for text in task.forbid:
        comparisons = parsed(text)
        if _holds(comparisons, params, task.space):
            return _shown(comparisons)
    return None


def canonical_condition(text: str) -> str:
    """The same condition as it is shown and kept: one blank around each sign."""
    return _shown(parsed(text))


def _holds(comparisons: Sequence[Comparison], params: Mapping[str, ParamValue], space: Mapping[str, Parameter]) -> bool:
    for one in comparisons:
        parameter, value = space.get(one.name), params.get(one.name)
        limit = None if parameter is None else _value(one.text, parameter)
        if limit is None or value is None:
            return False
        if isinstance(parameter, CategoricalParameter):
            is_same = value == limit and isinstance(value, bool) == isinstance(limit, bool)
            if is_same != (one.sign == "="):
                return False
        elif isinstance(value, str | bool) or not _OPERATORS[one.sign](value, limit):
            return False
    return True


def _value(text: str, parameter: Parameter) -> ParamValue:
    """None: the parameter has no such value."""
    if isinstance(parameter, CategoricalParameter):
        same = [choice for choice in parameter.choices if str(choice) == text]
        alike = [choice for choice in parameter.choices if str(choice).lower() == text.lower()]
        return next(iter([*same, *alike]), None)
    try:
        number = float(text)
    except ValueError:
        return None
    if not math.isfinite(number):
        return None
    return int(number) if isinstance(parameter, IntParameter) and number.is_integer() else number


def _shown(comparisons: Sequence[Comparison]) -> str:
    return " and ".join(f"{one.name} {one.sign} {_quoted(one.text)}" for one in comparisons)


def _quoted(text: str) -> str:
    """What was read in marks of one kind has none of that kind in it."""
    if _BARE.fullmatch(text):
        return text
    return f"'{text}'" if '"' in text else f'"{text}"'
