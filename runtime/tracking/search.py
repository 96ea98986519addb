"""`runs/search` over the runs that we hold: filters joined by AND, and ordering. What is beyond that goes to MLflow."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from runtime.store.records import RunRow

from . import queries
from .answers import RunContents

MAX_CANDIDATES = 5000
"""Newest runs of an experiment that a search looks at."""

_TERM = re.compile(
    r"""\s*(?:(?P<group>attributes?|attr|run|params?|parameters?|metrics?|tags?)\s*\.\s*)?
    (?P<key>`[^`]+`|"[^"]+"|[\w.\-/]+)\s*
    (?P<op>!=|<=|>=|=|<|>|(?i:i?like)\b)\s*
    (?P<value>'[^']*'|"[^"]*"|[-+]?[\d.]+(?:[eE][-+]?\d+)?)\s*""",
    re.VERBOSE,
)
_AND = re.compile(r"\s*(?i:and)\b")
_ORDER = re.compile(
    r"\s*(?:(?P<group>attributes?|attr|run|params?|parameters?|metrics?|tags?)\s*\.\s*)?"
    r"(?P<key>`[^`]+`|\"[^\"]+\"|[\w.\-/]+)(?:\s+(?P<way>(?i:asc|desc)))?\s*"
)
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_GROUPS = {"a": "attribute", "r": "attribute", "p": "param", "m": "metric", "t": "tag"}


class NotSimple(Exception):
    """A filter or an order that this module does not understand."""


@dataclass(frozen=True, slots=True)
class Term:
    """One comparison of a filter."""

    group: str
    key: str
    op: str
    value: str | float

    def holds(self, run: RunContents) -> bool:
        seen = _value(run, self.group, self.key)
        if seen is None:
            return False
        if self.op in ("like", "ilike"):
            flags = re.DOTALL | (re.IGNORECASE if self.op == "ilike" else 0)
            return re.fullmatch(_like(str(self.value)), str(seen), flags) is not None
        if isinstance(seen, int | float) != isinstance(self.value, int | float):
            raise NotSimple(f"{self.group} {self.key!r} is compared with a value of another type")
        return _COMPARE[self.op](seen, self.value)


@dataclass(frozen=True, slots=True)
class Order:
    group: str
    key: str
    is_descending: bool


def parse_filter(text: str) -> list[Term]:
    """Read `a = 'x' AND metrics.b > 3`.

    Raises:
        NotSimple: anything else.
    """
    terms: list[Term] = []
    at = 0
    while text[at:].strip():
        if terms:
            joined = _AND.match(text, at)
            if joined is None:
                raise NotSimple(f"can not read {text[at:]!r}")
            at = joined.end()
        found = _TERM.match(text, at)
        if found is None:
            raise NotSimple(f"can not read {text[at:]!r}")
        terms.append(_term(found))
        at = found.end()
    return terms


def parse_order(items: Sequence[str]) -> list[Order]:
    orders = []
    for item in items:
        found = _ORDER.fullmatch(item)
        if found is None:
            raise NotSimple(f"can not read the order {item!r}")
        way = (found["way"] or "asc").lower()
        orders.append(Order(_group(found["group"]), found["key"].strip('`"'), way == "desc"))
    return orders


def select(runs: Sequence[RunContents], terms: Sequence[Term], orders: Sequence[Order]) -> list[RunContents]:
    """The runs for which all terms hold, ordered; runs without the value come last, ties newest first."""
    found = [run for run in runs if all(term.holds(run) for term in terms)]
    found.sort(key=lambda run: -run.row.created_at)
    for order in reversed(orders):
        having = [run for run in found if _sortable(_value(run, order.group, order.key))]
        without = [run for run in found if not _sortable(_value(run, order.group, order.key))]

        def by_value(run: RunContents, order: Order = order) -> Any:
            return _value(run, order.group, order.key)

        found = sorted(having, key=by_value, reverse=order.is_descending) + without
    return found


def contents(connection: sa.Connection, rows: Sequence[RunRow]) -> list[RunContents]:
    """Everything logged to these runs, in three queries."""
    ids = [row.run_id for row in rows]
    params = queries.pairs_of_runs(connection, ids, kind="params")
    tags = queries.pairs_of_runs(connection, ids, kind="tags")
    latest = queries.latest_of_runs(connection, ids)
    return [
        RunContents(
            row=row,
            params=params[row.run_id],
            tags=tags[row.run_id],
            latest=tuple(latest[row.run_id].values()),
        )
        for row in rows
    ]


def _term(found: re.Match[str]) -> Term:
    raw = found["value"]
    group, op = _group(found["group"]), found["op"].lower()
    if raw[0] in "'\"":
        return Term(group, found["key"].strip('`"'), op, raw[1:-1])
    try:
        return Term(group, found["key"].strip('`"'), op, float(raw))
    except ValueError as error:
        raise NotSimple(f"{raw!r} is no number") from error


def _group(name: str | None) -> str:
    return _GROUPS[(name or "attribute")[0]]


def _value(run: RunContents, group: str, key: str) -> str | float | None:
    if group == "param":
        return run.params.get(key)
    if group == "tag":
        return run.tags.get(key)
    if group == "metric":
        return next((point.value for point in run.latest if point.key == key), None)
    return _attribute(run.row, run.tags, key)


def _attribute(row: RunRow, tags: Any, key: str) -> str | float | None:
    match key.lower():
        case "run_id":
            return row.run_id
        case "run_name" | "run name":
            return row.run_name
        case "status":
            return row.status
        case "start_time" | "created":
            return round(row.created_at * 1000)
        case "end_time":
            return None if row.ended_at is None else round(row.ended_at * 1000)
        case "user_id":
            return str(tags.get("mlflow.user", ""))
    raise NotSimple(f"unknown attribute {key!r}")


def _sortable(value: str | float | None) -> bool:
    return value is not None and not (isinstance(value, float) and math.isnan(value))


def _like(pattern: str) -> str:
    return "".join(".*" if c == "%" else "." if c == "_" else re.escape(c) for c in pattern)
