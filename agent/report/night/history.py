"""The plots of a sweep's nights: the best of each cell, and what is watched beside it, over the dates. Inline SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from markupsafe import Markup

from agent.report.canvas import STAND_IN, clipped, draw, robust_limits
from agent.sweeps.views import CellBest, Change, NightView

from .facts import NightReport, sampled
from .sentence import shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NOTHING = Markup("")
DAY_S = 86_400.0
MAX_PANELS = 12
MAX_LINES = 8
"""Cells drawn in one panel of times and memory."""
MAX_TICKS = 3
PANEL = (4.0, 2.0)
"""Width and height of one of several, in inches of 72 px."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastPoint:
    """One cell in one night."""

    night: NightView
    best: CellBest
    worse: frozenset[str]
    """What of it got worse that night."""


def series(report: NightReport) -> dict[str, tuple[PastPoint, ...]]:
    """By cell, in tonight's order and with what got worse tonight first; cells of earlier nights only come last."""
    points: dict[str, list[PastPoint]] = {best.cell: [] for best in report.summary.cells}
    for night in sampled(report.nights):
        if night.summary is None:
            continue
        for best in night.summary.cells:
            worse = frozenset(w.what for w in night.summary.watched if w.cell == best.cell and w.change is Change.WORSE)
            points.setdefault(best.cell, []).append(PastPoint(night=night, best=best, worse=worse))
    tonight = report.night.night_id
    alarmed = {cell for cell, own in points.items() if own and own[-1].night.night_id == tonight and own[-1].worse}
    ordered = sorted(points, key=lambda cell: cell not in alarmed)
    return {cell: tuple(points[cell]) for cell in ordered if points[cell]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One plot; its title is text, so that the page lays the panels out by its width."""

    title: str
    svg: Markup


def metric_panels(report: NightReport, by_cell: dict[str, tuple[PastPoint, ...]]) -> tuple[Panel, ...]:
    """Best with its interval and the default, one panel a cell; none where fewer than two nights gave a value."""
    shown = {cell: own for cell, own in by_cell.items() if sum(_value(p) is not None for p in own) > 1}
    cells = list(shown)[:MAX_PANELS]
    width, height = (8.6, 3.0) if len(cells) == 1 else PANEL
    return tuple(
        _panel(
            f"night{at}",
            shortened(cell, 60) if len(by_cell) > 1 else "",
            partial(_paint_metric, own=shown[cell], report=report),
            width=width,
            height=height,
        )
        for at, cell in enumerate(cells)
    )


def _panel(name: str, title: str, paint: Callable[[Axes], None], *, width: float, height: float) -> Panel:
    return Panel(title=title, svg=draw(name, lambda axes: paint(axes[0]), width=width, height=height))


def _paint_metric(ax: Axes, own: tuple[PastPoint, ...], report: NightReport) -> None:
    known = [(p, value) for p in own if (value := _value(p)) is not None]
    defaults = [(p.night.created_at, p.best.default_value) for p in own if _is_finite(p.best.default_value)]
    values = [value for _, value in known]
    limits = robust_limits([*values, *(d for _, d in defaults if d is not None)], keep=(values[-1],))
    if defaults:
        days, heights = zip(*((_day(at), value) for at, value in defaults), strict=True)
        ax.plot(days, heights, color=STAND_IN["default"], lw=1.2, ls=(0, (5, 3)))
    ax.plot([_day(p.night.created_at) for p, _ in known], values, color=STAND_IN["best"], lw=1.6, alpha=0.9)
    for point, value in known:
        _paint_point(ax, point, value, limits)
    ax.set_ylim(*limits)
    _set_dates(ax, [p.night.created_at for p in own], report)
    ax.set_ylabel(shortened(own[-1].best.metric, 24))


def _paint_point(ax: Axes, point: PastPoint, value: float, limits: tuple[float, float]) -> None:
    day = _day(point.night.created_at)
    interval = point.best.best
    role = "bad" if "metric" in point.worse else "best"
    if interval is not None and math.isfinite(interval.low) and math.isfinite(interval.high):
        ax.plot([day, day], [interval.low, interval.high], color=STAND_IN[role], lw=1.6, alpha=0.45)
    y, marker = clipped(value, limits)
    if point.night.is_reference and marker == "o":
        marker = "D"
    size = 7.5 if role == "bad" else 5.0
    ax.plot(day, y, marker, ms=size, color=STAND_IN[role], mec=STAND_IN["paper"], mew=0.8, zorder=4)


def cost_panels(report: NightReport, by_cell: dict[str, tuple[PastPoint, ...]]) -> tuple[Panel, ...]:
    """Run time, memory and trials without a value, over the nights; none where fewer than two nights are known."""
    if len({p.night.night_id for own in by_cell.values() for p in own}) < 2:
        return ()
    drawn = dict(list(by_cell.items())[:MAX_LINES])
    paints: dict[str, Callable[[Axes], None]] = {
        "seconds a trial, median": lambda ax: _paint_lines(ax, drawn, lambda p: p.best.seconds, "speed", report),
        "memory a trial in MB, median": lambda ax: _paint_lines(
            ax, drawn, lambda p: p.best.memory_mb, "memory", report
        ),
        "trials without a value": lambda ax: _paint_failures(ax, by_cell, report),
    }
    return tuple(
        _panel(f"cost{at}", title, paint, width=PANEL[0], height=PANEL[1])
        for at, (title, paint) in enumerate(paints.items())
    )


def _paint_lines(
    ax: Axes,
    by_cell: dict[str, tuple[PastPoint, ...]],
    height: Callable[[PastPoint], float | None],
    what: str,
    report: NightReport,
) -> None:
    heights = []
    for own in by_cell.values():
        known = [(p, value) for p in own if (value := height(p)) is not None and math.isfinite(value)]
        heights += [value for _, value in known]
        days = [_day(p.night.created_at) for p, _ in known]
        ax.plot(days, [value for _, value in known], "o-", color=STAND_IN["search"], lw=1.3, ms=2.5, alpha=0.75)
        for point, value in known:
            if what in point.worse:
                ax.plot(_day(point.night.created_at), value, "o", ms=7, color=STAND_IN["bad"], zorder=4)
    _set_dates(ax, [p.night.created_at for own in by_cell.values() for p in own], report)
    if heights:
        ax.set_ylim(0, max(heights) * 1.12 or 1.0)
    else:
        ax.text(0.5, 0.5, "not known", ha="center", transform=ax.transAxes, color=STAND_IN["muted"])
        ax.set_yticks([])


def _paint_failures(ax: Axes, by_cell: dict[str, tuple[PastPoint, ...]], report: NightReport) -> None:
    failed: dict[float, int] = {}
    for own in by_cell.values():
        for point in own:
            at = point.night.created_at
            failed[at] = failed.get(at, 0) + point.best.n_failed
    ax.vlines([_day(at) for at in failed], 0, list(failed.values()), color=STAND_IN["bad"], lw=2.2)
    ax.set_ylim(0, max([*failed.values(), 1]) * 1.15)
    ax.locator_params(axis="y", integer=True, nbins=4)
    _set_dates(ax, list(failed), report)


def _set_dates(ax: Axes, moments: Sequence[float], report: NightReport) -> None:
    """A few dates below; nights that are missing leave a gap."""
    nights = sorted(set(moments))
    low, high = _day(nights[0]), _day(nights[-1])
    room = max(0.04 * (high - low), 0.5)
    ax.set_xlim(low - room, high + room)
    n_ticks = min(MAX_TICKS, len(nights))
    places = [round(at * (len(nights) - 1) / max(1, n_ticks - 1)) for at in range(n_ticks)]
    ticks = [nights[place] for place in dict.fromkeys(places)]
    ax.set_xticks([_day(at) for at in ticks], [report.day(at) for at in ticks])
    ax.grid(axis="x", visible=False)


def _value(point: PastPoint) -> float | None:
    best = point.best.best
    return None if best is None or not math.isfinite(best.estimate) else best.estimate


def _is_finite(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def _day(at: float) -> float:
    return at / DAY_S


def interval_mark(low: float, estimate: float, high: float, reach: float) -> Markup:
    """A small picture of an interval against zero; `reach` is what the half width shows. Numbers only."""
    if not all(math.isfinite(x) for x in (low, estimate, high, reach)) or reach <= 0:
        return NOTHING
    x = [round(60 + 56 * max(-1.0, min(1.0, value / reach)), 1) for value in (low, estimate, high)]
    return Markup(
        '<svg class="mark" viewBox="0 0 120 16" aria-hidden="true"><path class="axis" d="M60 1V15"/>'
        '<path class="span" d="M{0} 8H{2}"/><circle cx="{1}" cy="8" r="3.6"/></svg>'
    ).format(*x)


def reach_of(values: Sequence[float]) -> float:
    """What the marks of one kind show at most: the largest distance from zero."""
    return max((abs(v) for v in values if math.isfinite(v)), default=0.0)
