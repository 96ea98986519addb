"""Points in time as people write them: `18:00`, `2h`, `+2h`, `2026-12-24 18:00`."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from .failure import wrong_use

CLOCK = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])")
SECONDS_BY_UNIT = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def until(text: str, *, now: float, option: str) -> float:
    """A time that is to come, in seconds since the epoch: the next `18:00` of this machine's clock, `2h` from now,
    or a date with a time.

    Raises:
        Failure: it is none of these.
    """
    length = span(text.removeprefix("+"))
    if length is not None:
        return now + length
    clock = CLOCK.fullmatch(text)
    if clock is None:
        return _date(text, option)
    today = _local(now).replace(hour=int(clock[1]), minute=int(clock[2]), second=0, microsecond=0)
    at_s = _instant(today)
    return at_s if at_s > now else _instant(today + timedelta(days=1))


def told(at_s: float, *, now: float) -> str:
    """`07:00` within the next 24 hours, else `2026-12-24 07:00`; of this machine's clock."""
    form = "%H:%M" if 0 <= at_s - now < 86400.0 else "%Y-%m-%d %H:%M"
    return _local(at_s).strftime(form)


def coming(text: str, *, now: float, option: str) -> float:
    """As `until`, and it is still to come.

    Raises:
        Failure: as `until`, or it is past.
    """
    at = until(text, now=now, option=option)
    if at <= now:
        raise wrong_use(
            f"{option} {text!r} is past: it is {moment(now)} now. Give a later time, or 07:00 for the next one.",
            code="deadline_passed",
        )
    return at


def moment(at: float) -> str:
    """Date and time of this machine's clock, with its zone."""
    return datetime.fromtimestamp(at).astimezone().strftime("%Y-%m-%d %H:%M %Z")


def span(text: str) -> float | None:
    """`90s`, `30m`, `2h`, `7d` in seconds; None: it is no length of time."""
    if text[-1:] not in SECONDS_BY_UNIT:
        return None
    try:
        value = float(text[:-1]) * SECONDS_BY_UNIT[text[-1]]
    except ValueError:
        return None
    return value if 0 < value < float("inf") else None


def _date(text: str, option: str) -> float:
    try:
        found = datetime.fromisoformat(text)
        return _instant(found) if found.tzinfo is None else found.timestamp()
    except (ValueError, OverflowError):
        raise wrong_use(
            f"{option} {text!r} is no time; write 18:00, 2h or '2026-12-24 18:00'.", code="bad_time"
        ) from None


def _local(at_s: float) -> datetime:
    """What this machine's clock shows then, without its zone."""
    return datetime.fromtimestamp(at_s).astimezone().replace(tzinfo=None, fold=0)


def _instant(local: datetime) -> float:
    """Seconds since the epoch of a time of this machine's clock. Of two the first; of none, the first after the gap."""
    later = local.timestamp()
    if _local(later) == local:
        return later
    earlier = local.replace(fold=1).timestamp()  # In a gap the two readings lie on both sides of it (PEP 495).
    offset = datetime.fromtimestamp(earlier).astimezone().utcoffset()
    while later - earlier > 1.0:
        middle = (earlier + later) // 2.0
        is_before = datetime.fromtimestamp(middle).astimezone().utcoffset() == offset
        earlier, later = (middle, later) if is_before else (earlier, middle)
    return later
