"""Between frozen dataclasses and table rows: a row class has one field for each column, of the same name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

T = TypeVar("T")

CHUNK = 500
"""Values in one IN list."""


def as_values(row: Any) -> dict[str, Any]:
    """The fields of a row object, one level deep."""
    return {field.name: getattr(row, field.name) for field in fields(row)}


def all_values(rows: Sequence[Any]) -> list[dict[str, Any]]:
    """`as_values` of many rows of one class."""
    names = [field.name for field in fields(rows[0])] if rows else []
    return [{name: getattr(row, name) for name in names} for row in rows]


def load(kind: type[T], row: sa.Row[Any]) -> T:
    """The row object of a selected row."""
    return kind(**row._mapping)


def load_all(kind: type[T], rows: Iterable[sa.Row[Any]]) -> list[T]:
    return [kind(**row._mapping) for row in rows]


def insert_or_replace(connection: sa.Connection, table: sa.Table, values: Sequence[dict[str, Any]]) -> None:
    """Insert rows; where the primary key exists already, the new values win."""
    if not values:
        return
    insert = (postgresql if connection.dialect.name == "postgresql" else sqlite).insert(table)
    keys = [column.name for column in table.primary_key]
    changed = {name: insert.excluded[name] for name in values[0] if name not in keys}
    connection.execute(insert.on_conflict_do_update(index_elements=keys, set_=changed), list(values))


def in_chunks(values: Iterable[T]) -> Iterable[list[T]]:
    """Short lists for IN; databases bound the number of parameters."""
    rest = list(dict.fromkeys(values))
    return (rest[start : start + CHUNK] for start in range(0, len(rest), CHUNK))
