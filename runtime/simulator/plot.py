"""The timeline of a simulation as a picture: devices held and jobs waiting, by class. Needs matplotlib, on use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .errors import BadScenario
from .ledger import Ledger

N_BINS = 600
UNITS = (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0), ("seconds", 1.0))
SUFFIXES = (".svg", ".png", ".pdf")
COLORS = ("#c0392b", "#2e6da4", "#8fb8de", "#7f8c8d", "#b7950b", "#6c3483")


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """Time-weighted means over equal bins."""

    edges_s: tuple[float, ...]
    """One more than there are bins, from the first change on."""
    held: dict[str, list[float]]
    """Devices by class."""
    waiting: dict[str, list[float]]
    """Jobs by class."""


def timeline_of(ledger: Ledger, classes: Sequence[str], *, n_bins: int = N_BINS) -> Timeline:
    """Cut the life of the cluster into bins."""
    changes = ledger.changes
    begins_s = changes.at_s[0] if changes.at_s else 0.0
    width_s = max((changes.at_s[-1] - begins_s) / n_bins, 1e-9) if changes.at_s else 1.0
    held = {name: [0.0] * n_bins for name in classes}
    waiting = {name: [0.0] * n_bins for name in classes}
    end_s = begins_s + n_bins * width_s
    for at_s, which, d_held, d_waiting in zip(
        changes.at_s, changes.which, changes.d_held, changes.d_waiting, strict=True
    ):
        name = changes.classes[which]
        first = min(n_bins - 1, int((at_s - begins_s) / width_s))
        share = (min(end_s, begins_s + (first + 1) * width_s) - at_s) / width_s
        for series, step in ((held[name], d_held), (waiting[name], d_waiting)):
            series[first] += step * share
            if first + 1 < n_bins:
                series[first + 1] += step * (1.0 - share)
    for series in (*held.values(), *waiting.values()):
        _accumulate(series)
    return Timeline(edges_s=tuple(i * width_s for i in range(n_bins + 1)), held=held, waiting=waiting)


def _accumulate(series: list[float]) -> None:
    """From what each bin adds for good to what it holds."""
    total = 0.0
    for i, step in enumerate(series):
        total += step
        series[i] = max(0.0, total)


def check_picture(path: Path) -> None:
    """
    Raises:
        BadScenario: the name says no kind of picture that can be drawn, or its folder does not exist.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise BadScenario(f"{path}: the plot is written as {', '.join(SUFFIXES)}; give a name that ends so")
    if not path.absolute().parent.is_dir():
        raise BadScenario(f"{path}: the folder {path.absolute().parent} does not exist")


def draw(timeline: Timeline, path: Path, *, n_devices: int, title: str) -> None:
    """Write the picture; the suffix decides the format.

    Raises:
        BadScenario: as `check_picture`.
        OSError: the file can not be written.
    """
    check_picture(path)
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    with mpl.rc_context({"svg.hashsalt": "nightlab", "svg.fonttype": "none", "font.size": 9}):
        figure, (above, below) = pyplot.subplots(
            2, 1, figsize=(10, 5.5), sharex=True, gridspec_kw={"height_ratios": (2, 1)}, layout="constrained"
        )
        unit, unit_s = unit_of(timeline.edges_s)
        times = [edge / unit_s for edge in timeline.edges_s]
        for axes, by_class in ((above, timeline.held), (below, timeline.waiting)):
            base = [0.0] * len(next(iter(by_class.values()), []))
            for color, (name, series) in zip(_colors(len(by_class)), by_class.items(), strict=True):
                top = [low + value for low, value in zip(base, series, strict=True)]
                axes.stairs(top, times, baseline=base, fill=True, color=color, label=name)
                base = top
            axes.spines[["top", "right"]].set_visible(False)
            axes.margins(x=0)
        above.axhline(n_devices, color="black", linewidth=0.8)
        above.set_ylabel("devices held")
        above.set_title(title, loc="left")
        above.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=len(timeline.held) or 1, frameon=False)
        below.set_ylabel("jobs waiting")
        below.set_xlabel(unit)
        figure.savefig(path, metadata={"Date": None} if path.suffix.lower() == ".svg" else None)
        pyplot.close(figure)


def unit_of(edges_s: Sequence[float]) -> tuple[str, float]:
    """The unit of the time axis and its seconds: the largest of which the picture spans two at least."""
    span_s = edges_s[-1] - edges_s[0] if edges_s else 0.0
    return next(((name, seconds) for name, seconds in UNITS if span_s >= 2 * seconds), UNITS[-1])


def _colors(n: int) -> list[str]:
    return [COLORS[i % len(COLORS)] for i in range(n)]
