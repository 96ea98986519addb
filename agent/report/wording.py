"""How numbers, times and states are written for a person. Pure; the report, the live view and the demo use it."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from agent.store.views import Interval, ParamValue

NONE = "–"
MAX_DECIMALS = 8


def number(value: float | None, *, digits: int = 5) -> str:
    """Up to `digits` significant digits, trailing zeros left out."""
    if value is None:
        return NONE
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value:.{digits}g}".replace("e-0", "e-").replace("e+0", "e+")


def brief(value: float, *, width: int) -> str:
    """With as many digits as fit; what can not be shortened further is longer than `width`."""
    shown = (number(value, digits=digits) for digits in (4, 3, 2, 1))
    return next((text for text in shown if len(text) <= width), number(value, digits=1))


def parameter(value: ParamValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return number(value, digits=3)
    return NONE if value is None else str(value)


def _form(interval: Interval, signed: bool) -> str:
    """Shows the interval's half width with two digits; significant digits where decimals would be too many."""
    half = (interval.high - interval.low) / 2
    sign = "+" if signed else ""
    if not math.isfinite(half) or half <= 0:
        return f"{sign}.4g"
    decimals = max(0, 1 - math.floor(math.log10(half)))
    return f"{sign}.{decimals}f" if decimals <= MAX_DECIMALS else f"{sign}.3g"


def estimate(interval: Interval | None, *, signed: bool = False) -> str:
    return NONE if interval is None else f"{interval.estimate:{_form(interval, signed)}}"


def bounds(interval: Interval | None, *, signed: bool = False) -> str:
    """`[0.9712, 0.9794]`."""
    if interval is None:
        return NONE
    form = _form(interval, signed)
    return f"[{interval.low:{form}}, {interval.high:{form}}]"


def duration(seconds: float | None) -> str:
    if seconds is None or not math.isfinite(seconds):
        return NONE
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"


def clock(seconds: float) -> str:
    """`1:07`, `1:02:03`."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def percent(share: float | None) -> str:
    return NONE if share is None else f"{100 * share:.0f} %"


def moment(at: float | None) -> str:
    """Date and time, UTC."""
    return NONE if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
