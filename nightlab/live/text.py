"""Small pieces of the live view: sparklines, bars, parameters. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from agent.report import wording
from agent.store.views import ParamValue
from nightlab.inert import clean

BLOCKS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float], width: int) -> str:
    """At most `width` blocks, low to high; longer series are thinned, the last value kept."""
    if not values or width < 1:
        return ""
    if len(values) > width:
        values = [values[round(i * (len(values) - 1) / max(1, width - 1))] for i in range(width)]
    low, high = min(values), max(values)
    if high == low:
        return BLOCKS[3] * len(values)
    return "".join(BLOCKS[min(7, int(8 * (v - low) / (high - low)))] for v in values)


def bar(share: float, width: int) -> tuple[str, str]:
    """The filled and the empty part."""
    filled = round(max(0.0, min(1.0, share)) * width)
    return "━" * filled, "─" * (width - filled)


def params(pairs: Sequence[tuple[str, ParamValue]]) -> str:
    return " ".join(f"{clean(name)}={clean(wording.parameter(value))}" for name, value in pairs)
