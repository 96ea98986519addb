"""What a tool found, cleaned: nothing of it can move a cursor, hide words or pass for a change of speaker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent.chat.entry import Cell, Plot, Series, Table
from agent.chat.tool import Result
from agent.llm.untrusted import clean
from agent.thinking.tables import Table as TextTable

MOST_CHARACTERS = 20_000
"""Of a text; what is more is cut in its middle."""
CELL_CHARACTERS = 300


def result(text: str, *, table: Table | None = None, plot: Plot | None = None) -> Result:
    return Result(text=_bounded(clean(text)), table=table, plot=plot)


def table(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> Table | None:
    """None where there are no rows: the text says that."""
    if not rows:
        return None
    return Table(columns=tuple(columns), rows=tuple(tuple(_cell(one) for one in row) for row in rows))


def plot(title: str, x_label: str, y_label: str, series: Sequence[tuple[str, Sequence[Any]]]) -> Plot:
    made = tuple(Series(name=line(name), points=tuple(points)) for name, points in series)
    return Plot(title=line(title), x_label=line(x_label), y_label=line(y_label), series=made)


def from_text_table(found: TextTable, nothing: str) -> Result:
    """
    Args:
        nothing: what is said where it has no rows.
    """
    if not found.rows:
        return result(nothing)
    said = f"{found.name}{f' ({found.note})' if found.note else ''}"
    return result(said, table=table(found.columns, found.rows))


def line(text: str) -> str:
    """On one line, cleaned and bounded."""
    flat = " ".join(clean(text[: 4 * CELL_CHARACTERS]).split())
    return flat if len(flat) <= CELL_CHARACTERS else f"{flat[: CELL_CHARACTERS - 3]}..."


def number(value: float | None) -> float | None:
    """As it is shown: five digits tell trials apart, more are noise."""
    return None if value is None else float(f"{value:.6g}")


def plural(n: int, noun: str) -> str:
    """`1 job`, `2 jobs`."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def duration(seconds: float) -> str:
    """`40 s`, `3.5 min`, `2.1 h`."""
    if seconds < 90:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.3g} min" if seconds < 5400 else f"{seconds / 3600:.3g} h"


def _cell(value: Cell) -> Cell:
    return line(value) if isinstance(value, str) else value


def _bounded(text: str) -> str:
    if len(text) <= MOST_CHARACTERS:
        return text
    head, tail = MOST_CHARACTERS // 3, MOST_CHARACTERS - MOST_CHARACTERS // 3
    return f"{text[:head]}\n[... {len(text) - MOST_CHARACTERS:,} characters cut here ...]\n{text[-tail:]}"
