"""The slot timeline: one row a device, one bar an attempt, arrows from who stepped aside to for whom."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from . import wording
from .canvas import STAND_IN, draw
from .timeline import Holder, Segment

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROLE_OF = {
    Holder.SEARCH: "search",
    Holder.REPLICATE: "replicate",
    Holder.HELD_OUT: "held-out",
    Holder.OTHER: "other",
}
ROUND_STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 28_800, 86_400)
MAX_ROWS = 48
MAX_LABELLED = 400


def slot_timeline(held: Sequence[Segment]) -> Markup:
    """Empty when nothing ran. More than MAX_ROWS devices: the first ones are shown."""
    rows = {key: at for at, key in enumerate(sorted({(s.node_id, s.device) for s in held})[:MAX_ROWS])}
    shown = [s for s in held if (s.node_id, s.device) in rows]
    if not shown:
        return Markup("")
    origin = min(s.start for s in shown)
    span = max(s.end for s in shown) - origin or 1.0

    def paint(axes: list[Axes]) -> None:
        ax = axes[0]
        for segment in shown:
            row = rows[segment.node_id, segment.device]
            _paint_bar(ax, segment, row, origin)
            if len(shown) <= MAX_LABELLED:
                _paint_label(ax, segment, row, origin, span)
        _paint_arrows(ax, shown, rows, origin)
        names = {node for node, _ in rows}
        labels = [f"slot {d}" if len(names) == 1 else f"{n} / {d}" for n, d in rows]
        ax.set_yticks(range(len(rows)), labels)
        ax.set_ylim(len(rows) - 0.45, -0.65)
        ax.set_xlim(-0.005 * span, 1.005 * span)
        ax.grid(axis="y", visible=False)
        ax.set_xticks(list(range(0, int(span) + 1, _tick_s(span))))
        ax.xaxis.set_major_formatter(lambda x, _at: wording.clock(x))
        ax.set_xlabel("time since the first start")

    return draw("slots", paint, width=8.6, height=0.95 + min(0.55, 14 / len(rows)) * len(rows))


def _tick_s(span_s: float) -> int:
    """A round step between ticks that makes at most ten of them."""
    return next(
        (step for step in ROUND_STEPS_S if span_s / step <= 10), ROUND_STEPS_S[-1] * (int(span_s) // 864_000 + 1)
    )


def _paint_bar(ax: Axes, segment: Segment, row: int, origin: float) -> None:
    color = STAND_IN[ROLE_OF[segment.holder]]
    start, end = segment.start - origin, segment.end - origin
    ax.barh(row, end - start, left=start, height=0.62, color=color, ec=STAND_IN["paper"], lw=0.8)
    if segment.outcome in {"failed", "timed_out", "launch_failed", "node_lost"}:
        ax.plot(end, row, "x", ms=6, mew=1.8, color=STAND_IN["bad"], zorder=5)
    if segment.stop_ordered_at is not None and segment.outcome == "preempted":
        stop = max(start, segment.stop_ordered_at - origin)
        width = max(end - stop, 0.0)
        ax.barh(row, width, left=stop, height=0.62, color="none", ec=STAND_IN["paper"], hatch="////", lw=0)
    if segment.attempt > 1:
        ax.plot(start, row - 0.42, ">", ms=6, color=STAND_IN["ink"], clip_on=False, zorder=6)


def _paint_label(ax: Axes, segment: Segment, row: int, origin: float, span: float) -> None:
    width = segment.end - segment.start
    names = [segment.priority_class, segment.job_id] if segment.trial_number is None else [str(segment.trial_number)]
    text = next((name for name in names if width / span >= 0.0095 * len(name) + 0.006), None)
    if text is None:
        return
    middle = segment.start - origin + width / 2
    ax.text(middle, row, text, ha="center", va="center", fontsize=8, color=STAND_IN["paper"], zorder=5)


def _paint_arrows(ax: Axes, shown: Sequence[Segment], rows: dict[tuple[str, int], int], origin: float) -> None:
    """From the moment an attempt was asked to leave to the job it stepped aside for."""
    for victim in shown:
        if victim.beneficiary is None or victim.stop_ordered_at is None:
            continue
        gains = [s for s in shown if s.job_id == victim.beneficiary and s.end >= victim.stop_ordered_at]
        if not gains:
            continue
        own = rows[victim.node_id, victim.device]
        gain = min(gains, key=lambda s: (abs(rows[s.node_id, s.device] - own), s.start))
        place = rows[gain.node_id, gain.device]
        ax.annotate(
            "",
            xy=((gain.start + gain.end) / 2 - origin, place - 0.33),
            xytext=(victim.stop_ordered_at - origin, own - 0.33),
            arrowprops={
                "arrowstyle": "-|>",
                "color": STAND_IN["ink"],
                "lw": 1.3,
                "connectionstyle": "arc3,rad=-0.45",
                "shrinkA": 0,
                "shrinkB": 0,
            },
            zorder=7,
            annotation_clip=False,
        )
