"""Numbered choices made by code, for a model that can do no more than pick. Pure.

Whatever it answers, only what stands on the menu comes of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from agent.llm.reading import Unreadable, without_thoughts
from agent.llm.shape import T
from agent.llm.untrusted import clean, fenced
from prompts import Fenced

MAX_ITEMS = 40
_LINE_CHARACTERS = 300
_NUMBERS_ONLY = re.compile(r"[\s\d\[\](){}#.,;:*`\"'-]+")
_DECIMAL = re.compile(r"\d[.]\d")
_SAID = re.compile(r"(?:choice|choose|answer|option|number|pick|select)\w*\W{0,12}(\d+(?:\s*,\s*\d+)*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class MenuItem:
    text: str
    """One line for the model."""
    gives: Mapping[str, object]
    """Fields of the reply. Of several choices, lists are joined, and anything else is the first one's."""


def is_many(menu: Sequence[MenuItem]) -> bool:
    """Whether several may be chosen: all that the items give is lists."""
    return all(isinstance(value, list) for item in menu for value in item.gives.values())


def menu_text(menu: Sequence[MenuItem]) -> Fenced:
    """The choices as a model reads them, one a line, numbered from 1."""
    lines = [f"{n}. {' '.join(clean(item.text).split())[:_LINE_CHARACTERS]}" for n, item in enumerate(menu, start=1)]
    return fenced("\n".join(lines), label="choices", limit=(_LINE_CHARACTERS + 5) * MAX_ITEMS)


def chosen(text: str, menu: Sequence[MenuItem], *, at_most: int) -> tuple[int, ...]:
    """The numbers that an answer names, in its order, without repetition; empty: none of them.

    Raises:
        Unreadable: it names none, or which ones is not clear.
    """
    numbers = list(dict.fromkeys(_numbers(without_thoughts(text))))
    odd = [n for n in numbers if n > len(menu)]
    if odd:
        raise Unreadable(f"{odd[0]} is not on the list; write numbers from 1 to {len(menu)}, or 0 for none of them")
    return tuple(n for n in numbers if n > 0)[:at_most]


def value_of(numbers: Sequence[int], menu: Sequence[MenuItem], reply: type[T]) -> T:
    """The reply that these choices make; of too many, the first ones.

    Raises:
        ValidationError: the menu gives what the class does not take: our mistake.
    """
    for n in range(len(numbers), 1, -1):
        try:
            return reply.model_validate(_joined(numbers[:n], menu))
        except ValidationError:
            continue
    return reply.model_validate(_joined(numbers[:1], menu))


def _joined(numbers: Sequence[int], menu: Sequence[MenuItem]) -> dict[str, object]:
    joined: dict[str, object] = {}
    for number in numbers:
        for name, value in menu[number - 1].gives.items():
            before = joined.get(name)
            if isinstance(value, list) and isinstance(before, list):
                joined[name] = [*before, *value]
            elif name not in joined:
                joined[name] = value
    return joined


def _numbers(text: str) -> list[int]:
    """Of an answer of numbers alone, of its one line of numbers, of what it says it chooses, else its only number."""
    text = re.sub(r"\band\b", ",", text)
    lines = [line for line in text.splitlines() if _is_numbers(line)]
    said = _SAID.findall(text)
    found: list[str] = []
    if _is_numbers(text):
        found = _digits(text)
    elif len(lines) == 1:
        found = _digits(lines[0])
    elif len({tuple(_digits(one)) for one in said}) == 1:
        found = _digits(said[0])
    elif len(set(_digits(text))) == 1:
        found = _digits(text)
    if not found or _DECIMAL.search(text):
        raise Unreadable("write the numbers of your choices and nothing else")
    return [int(digits[:9]) for digits in found]


def _is_numbers(text: str) -> bool:
    return _NUMBERS_ONLY.fullmatch(text) is not None and any(c.isdigit() for c in text)


def _digits(text: str) -> list[str]:
    return re.findall(r"[0-9]+", text)


def empty(reply: type[T]) -> T | None:
    """The reply of a model that wants none of the choices, where its class allows one that says nothing."""
    try:
        return reply.model_validate({})
    except ValidationError:
        return None
