"""A small text table: few rows, short cells."""

from __future__ import annotations

from dataclasses import dataclass

from agent.store.views import ParamValue

CELL_CHARACTERS = 160
"""Of one cell; what is longer is cut."""
NOTHING = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    """What a reader has to know of it: how many there are beyond those shown."""
    is_untrusted: bool = False
    """Cells hold text of jobs, people or earlier answers: it goes into a prompt fenced, or not at all."""

    @property
    def text(self) -> str:
        """One line a row, cells between bars; the empty text where there are no rows."""
        if not self.rows:
            return ""
        lines = [" | ".join(self.columns), *(" | ".join(cell(one) for one in row) for row in self.rows)]
        return "\n".join([*lines, *([f"({self.note})"] if self.note else [])])


def cell(text: str) -> str:
    """On one line, without bars, of bounded length."""
    flat = " ".join(text.replace("|", "/").split())
    return flat if len(flat) <= CELL_CHARACTERS else f"{flat[: CELL_CHARACTERS - 3]}..."


def number(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.5g}"


def shown(value: ParamValue) -> str:
    """A value of a parameter as it may be written back."""
    match value:
        case bool() | None:
            return str(value).lower()
        case float():
            return f"{value:.4g}"
        case _:
            return str(value)


def more(n_all: int, n_shown: int, what: str) -> str:
    """`12 of 300 trials`; empty where all are shown."""
    return "" if n_shown >= n_all else f"{n_shown} of {n_all} {what}"
