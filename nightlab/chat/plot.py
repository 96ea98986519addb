"""A plot as text: a few rows of braille dots with its axes, one color a series. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rich.text import Text

from agent.chat.entry import Plot, Series
from nightlab.inert import clean

COLORS = ("cyan", "yellow", "magenta", "green", "red", "blue")
LETTERS = "abcdefghijklmnopqrstuvwxyz"
LABEL_WIDTH = 10
DOTS_WIDE, DOTS_HIGH = 2, 4
BLANK = 0x2800
DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
"""Bit of the dot in each column and row of a braille character. Source: Unicode, block U+2800."""

Point = tuple[float, float]


def plotted(plot: Plot, *, width: int, height: int = 12, has_colors: bool = True) -> list[Text]:
    """Lines at most `width` wide. Without colors several series are told apart by letters."""
    lines = [Text(clean(plot.title), style="bold")] if plot.title else []
    runs = [list(_runs(one)) for one in plot.series]
    points = [point for series in runs for run in series for point in run]
    if not points:
        return [*lines, Text("there is nothing to plot yet")]
    has_letters = len(plot.series) > 1 and not has_colors
    canvas = _Canvas(points, max(10, width - LABEL_WIDTH - 2), height)
    for index, series in enumerate(runs):
        for run in series:
            canvas.draw(run, index)
    lines.extend(canvas.rows(has_letters))
    lines.append(canvas.x_axis(clean(plot.x_label)))
    names = [_legend(index, one, has_letters) for index, one in enumerate(plot.series)]
    return [*lines, Text("  ").join([Text(clean(plot.y_label)), *names])]


def _runs(series: Series) -> Iterator[list[Point]]:
    """Points that are joined by lines: a gap, or a value that is no number, parts them."""
    run: list[Point] = []
    for x, y in series.points:
        if y is not None and math.isfinite(x) and math.isfinite(y):
            run.append((x, y))
        elif run:
            yield run
            run = []
    if run:
        yield run


def _legend(index: int, series: Series, has_letters: bool) -> Text:
    mark = LETTERS[index % len(LETTERS)] if has_letters else "⠤⠤"
    return Text.assemble((mark, COLORS[index % len(COLORS)]), " ", clean(series.name))


class _Canvas:
    def __init__(self, points: Sequence[Point], n_columns: int, n_rows: int) -> None:
        self._n_columns, self._n_rows = n_columns, n_rows
        self._low_x, self._high_x = _range([x for x, _ in points])
        self._low_y, self._high_y = _range([y for _, y in points])
        self._cells: dict[tuple[int, int], tuple[int, int]] = {}
        """By row and column: bits of the dots, and whose the last one was."""

    def draw(self, run: Sequence[Point], index: int) -> None:
        """One series' points, with lines between them."""
        before = self._dot(run[0])
        for point in run:
            here = self._dot(point)
            n_steps = max(abs(here[0] - before[0]), abs(here[1] - before[1]), 1)
            for step in range(n_steps + 1):
                share = step / n_steps
                x = round(before[0] + share * (here[0] - before[0]))
                y = round(before[1] + share * (here[1] - before[1]))
                self._put(x, y, index)
            before = here

    def rows(self, has_letters: bool) -> Iterator[Text]:
        labels = {0: self._high_y, self._n_rows - 1: self._low_y}
        for row in range(self._n_rows):
            label = f"{labels[row]:.4g}" if row in labels else ""
            line = Text(f"{label:>{LABEL_WIDTH}} │", style="default")
            for column in range(self._n_columns):
                bits, index = self._cells.get((row, column), (0, 0))
                mark = LETTERS[index % len(LETTERS)] if has_letters else chr(BLANK + bits)
                line.append(mark if bits else " ", COLORS[index % len(COLORS)] if bits else "")
            line.rstrip()
            yield line

    def x_axis(self, label: str) -> Text:
        low, high = f"{self._low_x:.4g}", f"{self._high_x:.4g}"
        middle = max(0, self._n_columns - len(low) - len(high))
        return Text(f"{'':>{LABEL_WIDTH}}  {low}{label[: max(0, middle - 2)]:^{middle}}{high}")

    def _dot(self, point: Point) -> tuple[int, int]:
        across = (point[0] / 2 - self._low_x / 2) / (self._high_x / 2 - self._low_x / 2)
        up = (point[1] / 2 - self._low_y / 2) / (self._high_y / 2 - self._low_y / 2)
        return round(across * (self._n_columns * DOTS_WIDE - 1)), round((1 - up) * (self._n_rows * DOTS_HIGH - 1))

    def _put(self, x: int, y: int, index: int) -> None:
        place = (y // DOTS_HIGH, x // DOTS_WIDE)
        bits, _ = self._cells.get(place, (0, index))
        self._cells[place] = (bits | DOTS[x % DOTS_WIDE][y % DOTS_HIGH], index)


def _range(values: Sequence[float]) -> tuple[float, float]:
    """Lowest and highest, never the same."""
    low, high = min(values), max(values)
    if low < high:
        return low, high
    half = max(abs(low) * 0.5, 0.5)
    return low - half, high + half
