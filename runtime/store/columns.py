"""Column types that behave the same on SQLite and PostgreSQL.

PostgreSQL refuses NUL in text, over-long strings and NaN in JSON; SQLite takes them all. A value that one of the two
would refuse is refused, or made harmless, before either sees it.
"""

from __future__ import annotations

import json
import re
from enum import StrEnum
from typing import Any

import sqlalchemy as sa
from sqlalchemy.types import TypeDecorator

from runtime.model.nouns import Placement, SandboxReached

from .writer import StoreUnusable

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_MAX_WHOLE = 2**63 - 1


def clean_text(value: str) -> str:
    """The text with NUL and lone surrogates (log lines hold both) replaced by U+FFFD."""
    plain = value if type(value) is str else str(value)
    return plain if plain.isascii() and "\0" not in plain else _UNSTORABLE.sub("\ufffd", plain)


class Prose(TypeDecorator[str]):
    """Text of any length."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: sa.Dialect) -> str | None:
        return None if value is None else clean_text(value)


class Name(TypeDecorator[str]):
    """Text of at most `length` characters; longer values are refused, never cut."""

    impl = sa.String
    cache_ok = True

    def __init__(self, length: int) -> None:
        super().__init__(length)
        self.length = length

    def process_bind_param(self, value: str | None, dialect: sa.Dialect) -> str | None:
        if value is None:
            return None
        if len(value) > self.length:
            raise ValueError(f"{value[:40]!r}... has {len(value)} characters; at most {self.length} are allowed")
        return clean_text(value)


class Word(TypeDecorator[StrEnum]):
    """A member of an enum, stored as its value."""

    impl = sa.String
    cache_ok = True

    def __init__(self, words: type[StrEnum], length: int) -> None:
        super().__init__(length)
        self.words = words

    def process_bind_param(self, value: StrEnum | None, dialect: sa.Dialect) -> str | None:
        return None if value is None else self.words(value).value

    def process_result_value(self, value: str | None, dialect: sa.Dialect) -> StrEnum | None:
        try:
            return None if value is None else self.words(value)
        except ValueError as error:
            raise StoreUnusable(f"the database holds a value that nobody wrote: {error}") from error


class Whole(TypeDecorator[int]):
    """A whole number of 64 bits."""

    impl = sa.BigInteger
    cache_ok = True

    def process_bind_param(self, value: int | None, dialect: sa.Dialect) -> int | None:
        if value is not None and not -_MAX_WHOLE <= value <= _MAX_WHOLE:
            raise ValueError(f"{value} does not fit into 64 bits")
        return value


class Json(TypeDecorator[Any]):
    """JSON as ASCII text, in Python's dialect: NaN and infinities survive."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: sa.Dialect) -> str:
        return json.dumps(value, separators=(",", ":"))

    def process_result_value(self, value: str | None, dialect: sa.Dialect) -> Any:
        return None if value is None else _parsed(value)


class Placements(TypeDecorator[tuple[Placement, ...]]):
    """The nodes, devices and first ranks of an attempt, as a JSON list."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: tuple[Placement, ...] | None, dialect: sa.Dialect) -> str:
        return json.dumps(
            [{"node_id": item.node_id, "devices": item.devices, "first_rank": item.first_rank} for item in value or ()],
            separators=(",", ":"),
        )

    def process_result_value(self, value: str | None, dialect: sa.Dialect) -> tuple[Placement, ...]:
        return tuple(
            Placement(node_id=item["node_id"], devices=tuple(item["devices"]), first_rank=item["first_rank"])
            for item in _parsed(value or "[]")
        )


class Reached(TypeDecorator[SandboxReached]):
    """How far an attempt was shut off, as a JSON object."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: SandboxReached | None, dialect: sa.Dialect) -> str | None:
        if value is None:
            return None
        told = {"level": value.level, "layers": value.layers, "uid": value.uid, "how": value.how}
        return json.dumps(told, separators=(",", ":"))

    def process_result_value(self, value: str | None, dialect: sa.Dialect) -> SandboxReached | None:
        if value is None:
            return None
        item = _parsed(value)
        return SandboxReached(level=item["level"], layers=tuple(item["layers"]), uid=item["uid"], how=item.get("how"))


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise StoreUnusable(f"the database holds JSON that nobody wrote ({error}): put back a copy of it") from error
