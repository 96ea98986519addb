"""Matplotlib figures as inline SVG whose colors follow the page: light or dark, by CSS variables.

The only place that imports matplotlib, and only when a figure is drawn. A figure is drawn in stand-in colors, one
per role, which become `var(--role)` in the text of the SVG.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROLES = (
    "ink",
    "muted",
    "grid",
    "paper",
    "search",
    "replicate",
    "held-out",
    "other",
    "best",
    "default",
    "bad",
)
STAND_IN = {role: f"#0a1b{index:02x}" for index, role in enumerate(ROLES, start=1)}
"""Color of a role while drawing: no such color is drawn otherwise."""

SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "nightlab",
    "text.parse_math": False,
    "font.size": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": STAND_IN["grid"],
    "axes.labelcolor": STAND_IN["muted"],
    "axes.titlecolor": STAND_IN["ink"],
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": STAND_IN["grid"],
    "grid.linewidth": 0.7,
    "xtick.color": STAND_IN["grid"],
    "ytick.color": STAND_IN["grid"],
    "xtick.labelcolor": STAND_IN["muted"],
    "ytick.labelcolor": STAND_IN["muted"],
    "text.color": STAND_IN["ink"],
    "figure.facecolor": "none",
    "legend.frameon": False,
    "legend.labelcolor": STAND_IN["muted"],
}
NO_METADATA = {"Date": None, "Creator": None, "Format": None, "Type": None}


def draw(
    name: str, paint: Callable[[list[Axes]], None], *, width: float, height: float, rows: int = 1, columns: int = 1
) -> Markup:
    """One figure with rows x columns axes, which `paint` fills.

    `name` makes the ids unique within the page; `width` and `height` are in inches of 72 px.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(SETTINGS):
        figure = Figure(figsize=(width, height), layout="constrained")
        paint(list(figure.subplots(rows, columns, squeeze=False).flat))
        written = io.StringIO()
        figure.savefig(written, format="svg", metadata=NO_METADATA)
    return themed(written.getvalue(), name=name)


def themed(svg: str, *, name: str) -> Markup:
    """The `<svg>` element alone, with role colors as CSS variables, the page's font, and ids of its own."""
    svg = svg[svg.index("<svg") :]
    for role, color in STAND_IN.items():
        svg = svg.replace(color, f"var(--{role})")
    svg = re.sub(r"font: ([0-9.]+px) [^;\"]*", r"font: \1 var(--font)", svg)
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r'href="#', f'href="#{name}-', svg)
    svg = svg.replace("url(#", f"url(#{name}-")
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    # Safe: matplotlib escapes every text that it writes.
    return Markup(svg.strip())


def robust_limits(values: list[float], *, keep: tuple[float, ...] = ()) -> tuple[float, float]:
    """Axis limits that show most values well; far outliers fall outside. `keep` is always inside."""
    ordered = sorted([*values, *keep])
    if not ordered:
        return 0.0, 1.0
    q1, q3 = ordered[len(ordered) // 4], ordered[(3 * len(ordered)) // 4]
    reach = 2.0 * (q3 - q1)
    low = min([v for v in ordered if v >= q1 - reach] + list(keep))
    high = max([v for v in ordered if v <= q3 + reach] + list(keep))
    pad = 0.08 * (high - low) or 0.05 * abs(high) or 0.5
    return low - pad, high + pad


def clipped(value: float, limits: tuple[float, float]) -> tuple[float, str]:
    """Where to draw a value and with which marker: outliers become a triangle at the edge."""
    low, high = limits
    edge = 0.02 * (high - low)
    if value < low:
        return low + edge, "v"
    if value > high:
        return high - edge, "^"
    return value, "o"
