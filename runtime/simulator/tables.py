"""Reading tables as text, row by row, with errors that name the line and the column. Standard library only."""

from __future__ import annotations

import csv
import gzip
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from .errors import BadTrace


@dataclass(frozen=True, slots=True)
class Row:
    path: Path
    line: int
    values: dict[str, str]

    def text(self, column: str) -> str:
        """The cell, stripped; empty when there is none."""
        return (self.values.get(column) or "").strip()

    def number(self, column: str) -> float:
        """A finite number.

        Raises:
            BadTrace: it is none.
        """
        text = self.text(column)
        try:
            value = float(text)
        except ValueError:
            raise self.bad(f"column {column} is {text!r}, not a number") from None
        if not math.isfinite(value):
            raise self.bad(f"column {column} is {text!r}, not a finite number")
        return value

    def whole(self, column: str) -> int:
        """A whole number (`8` and `8.0` are).

        Raises:
            BadTrace: it is none.
        """
        value = self.number(column)
        if value != int(value):
            raise self.bad(f"column {column} is {self.text(column)!r}, not a whole number")
        return int(value)

    def bad(self, why: str) -> BadTrace:
        return BadTrace(self.path, why, line=self.line)


@dataclass(frozen=True, slots=True)
class Table:
    path: Path
    columns: tuple[str, ...]
    delimiter: str

    def rows(self) -> Iterator[Row]:
        """All rows, read one at a time.

        Raises:
            BadTrace: a row has more cells than there are columns, or the file is no text.
        """
        with _open(self.path) as file:
            reader = csv.DictReader(file, delimiter=self.delimiter)
            try:
                for values in reader:
                    if None in values:
                        raise BadTrace(self.path, "has more cells than there are columns", line=reader.line_num)
                    yield Row(self.path, reader.line_num, values)
            except (UnicodeDecodeError, csv.Error, OSError, EOFError) as error:
                raise BadTrace(self.path, f"can not be read as a table: {error}", line=reader.line_num) from error


def read_table(path: Path, *, needs: Sequence[str] = (), delimiter: str = ",", what: str = "this format") -> Table:
    """Look at the header; the rows are read later.

    Args:
        needs: Columns that must be there.
        what: The name of the format, for the error.

    Raises:
        BadTrace: no such file, or columns are missing.
    """
    try:
        with _open(path) as file:
            header = next(csv.reader(file, delimiter=delimiter), [])
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise BadTrace(path, f"can not be read: {why}") from error
    columns = tuple(name.strip() for name in header)
    missing = [name for name in needs if name not in columns]
    if missing:
        shown = ", ".join(columns[:12]) or "nothing"
        raise BadTrace(path, f"is not {what}: it has no column {', '.join(missing)}; the first line has: {shown}")
    return Table(path, columns, delimiter)


def _open(path: Path) -> TextIO:
    """The text of a file, also of a `.gz`."""
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")
