"""How commands print: the JSON envelope for programs, tables and short times for people.

Rich is imported when a table is drawn, not before.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

ENVELOPE_VERSION = 1
"""Equals `runtime_client.models.API_VERSION`, which costs an import of pydantic; a test compares them."""

STATE_STYLES = {
    "running": "green",
    "up": "green",
    "healthy": "green",
    "suspect": "yellow",
    "draining": "yellow",
    "cordoned": "yellow",
    "quarantined": "red",
    "succeeded": "green",
    "finished": "green",
    "starting": "cyan",
    "queued": "yellow",
    "waiting": "yellow",
    "stopping": "yellow",
    "stopped": "dim",
    "cancelled": "dim",
    "off": "dim",
    "failed": "red",
    "down": "red",
}

Cell = str | int | float | None


def print_json(data: object) -> None:
    """One line, `{"v": 1, "data": ...}`; models are dumped as the wire has them."""
    print(json.dumps({"v": ENVELOPE_VERSION, "data": _plain(data)}), flush=True)


def print_json_error(*, code: str, kind: str, message: str, is_retryable: bool, path: str | None) -> None:
    error = {"code": code, "kind": kind, "message": message, "retryable": is_retryable, "path": path}
    print(json.dumps({"v": ENVELOPE_VERSION, "error": error}), flush=True)


def note(text: str) -> None:
    """A line for the person that must not get into piped output."""
    print(text, file=sys.stderr, flush=True)


def _plain(data: object) -> object:
    if isinstance(data, Mapping):
        return {str(name): _plain(value) for name, value in data.items()}
    if isinstance(data, list | tuple):
        return [_plain(one) for one in data]
    dump = getattr(data, "model_dump", None)
    return data if dump is None else dump(mode="json")


def console(*, has_colors: bool = True) -> Console:
    """Standard output; without a terminal as wide as needed, so that piped tables are not cut."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else 160
    return Console(highlight=False, width=width, color_system="auto" if has_colors else None)


def print_words(text: str) -> None:
    """Sentences: broken between words on a terminal, one line elsewhere."""
    console().print(text, markup=False, soft_wrap=not sys.stdout.isatty())


def print_table(columns: Sequence[str], rows: Sequence[Sequence[Cell]], *, state_column: int | None = None) -> None:
    """A plain table; columns whose title begins with `#` are right-aligned."""
    console().print(table_of(columns, rows, state_column=state_column))


def table_of(columns: Sequence[str], rows: Sequence[Sequence[Cell]], *, state_column: int | None = None) -> Table:
    """As `print_table` prints it."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for index, title in enumerate(columns):
        is_number = title.startswith("#")
        table.add_column(
            title.lstrip("#"),
            justify="right" if is_number else "left",
            no_wrap=index == 0 or is_number or index == state_column,
            overflow="ellipsis" if index == 0 else "fold",
        )
    for row in rows:
        cells = [Text("" if cell is None else str(cell)) for cell in row]
        if state_column is not None:
            cells[state_column].stylize(STATE_STYLES.get(cells[state_column].plain, ""))
        table.add_row(*cells)
    return table


def ago(at: float | None, *, now: float | None = None) -> str:
    """`12 s ago`, `3 min ago`, `2 h ago`, `5 d ago`; nothing for None."""
    if at is None:
        return ""
    return f"{duration(max(0.0, (time.time() if now is None else now) - at))} ago"


def duration(seconds: float | None) -> str:
    """The two leading units at most: `45 s`, `12 min`, `3 h 20 min`, `2 d 4 h`."""
    if seconds is None:
        return ""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = int(seconds // 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {rest} min" if rest else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"


def plural(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
