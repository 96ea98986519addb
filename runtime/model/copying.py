"""A state to play on: what changes is copied, what is frozen is shared. Pure."""

from __future__ import annotations

from collections import deque
from copy import copy
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

T = TypeVar("T")
_FIXED = (str, int, float, tuple, frozenset, type(None))
"""What never changes, with its subclasses (enums, named tuples)."""


def copy_of(value: T) -> T:
    """The same, of which nothing that can be changed is shared. Much cheaper than a deep copy: items are frozen.

    Raises:
        TypeError: a kind of value that nobody has said how to copy.
    """
    copied: Any = _copied(value)
    found: T = copied
    return found


def _copied(value: Any) -> Any:
    match value:
        case dict():
            twin = copy(value)
            for key, each in value.items():
                twin[key] = _copied(each)
            return twin
        case list():
            return [_copied(each) for each in value]
        case deque():
            return deque((_copied(each) for each in value), value.maxlen)
        case set():
            return set(value)
        case _ if isinstance(value, _FIXED):
            return value
        case _ if is_dataclass(value) and not isinstance(value, type):
            return value if _is_frozen(value) else _copied_fields(value)
    raise TypeError(f"nobody has said how to copy a {type(value).__name__}")


def _copied_fields(value: Any) -> Any:
    twin = copy(value)
    for each in fields(value):
        setattr(twin, each.name, _copied(getattr(value, each.name)))
    return twin


def _is_frozen(value: Any) -> bool:
    return bool(type(value).__dataclass_params__.frozen)
