"""When a night may run and when it has to be over. Pure: the instant is an argument, in seconds since the epoch.

Wall times that a time zone skips (spring) count as the first instant after the gap, those that it has twice (autumn)
as the first of the two.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

_CLOCK = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])")
_WINDOW = re.compile(rf"({_CLOCK.pattern})\s*-\s*({_CLOCK.pattern})")
_MACHINE_ZONE = Path("/etc/localtime")


class BadTime(ValueError):
    """A time that can not be read or can not be kept; the message says what to write instead."""


@dataclass(frozen=True, slots=True)
class Window:
    """Hours of the day, as minutes after midnight; the end may lie in the next day."""

    opens: int
    closes: int


def zone(name: str | None) -> tzinfo:
    """The time zone of that name; None: this machine's.

    Raises:
        BadTime: there is none of that name.
    """
    if name is None:
        return _machine_zone()
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        known = available_timezones()
        close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
        hint = f"; did you mean {close[0]!r}?" if close else "; write a name like Europe/Berlin"
        raise BadTime(f"there is no time zone {name!r}{hint}") from None


def _machine_zone() -> tzinfo:
    try:
        with _MACHINE_ZONE.open("rb") as file:
            return ZoneInfo.from_file(file, key=str(_MACHINE_ZONE))
    except (OSError, ValueError):
        return UTC


def window_of(text: str) -> Window:
    """
    Raises:
        BadTime: it is not of the form `22:00-07:00`, or has no length.
    """
    found = _WINDOW.fullmatch(text.strip())
    if found is None:
        raise BadTime(f"{text!r} is no window; write 22:00-07:00")
    opens = 60 * int(found[2]) + int(found[3])
    closes = 60 * int(found[5]) + int(found[6])
    if opens == closes:
        raise BadTime(
            f"{text!r} has no length: it opens and closes at the same minute; leave window out for the whole day"
        )
    return Window(opens, closes)


def is_open(window: Window, where: tzinfo, now: float) -> bool:
    """Whether it has opened and not closed since: what the clock shows twice in autumn is in it once at most."""
    return closes_at(window, where, now) < opens_at(window, where, now)


def closes_at(window: Window, where: tzinfo, now: float) -> float:
    """The next instant at which the window closes."""
    return _next(window.closes, where, now)


def opens_at(window: Window, where: tzinfo, now: float) -> float:
    """The next instant at which it opens."""
    return _next(window.opens, where, now)


def finish_instant(text: str, where: tzinfo, start: float) -> float:
    """`07:00`: the next one after the start; `2026-12-24 07:00`: that one.

    Raises:
        BadTime: it is neither, or past.
    """
    clock = _CLOCK.fullmatch(text.strip())
    if clock is not None:
        return _next(60 * int(clock[1]) + int(clock[2]), where, start)
    try:
        given = datetime.fromisoformat(text.strip())
    except ValueError:
        raise BadTime(f"{text!r} is no time; write 07:00 or '2026-12-24 07:00'") from None
    at = given.timestamp() if given.tzinfo is not None else _instant(given, where)
    if at <= start:
        raise BadTime(f"{text!r} is past: it is {told(start, where)} now; write a later day, or 07:00 for every night")
    return at


def deadline_of(finish_by: str | None, window: str | None, where: tzinfo, start: float) -> float | None:
    """When nothing may run any more: the earlier one of `finish_by` and the end of the window. None: no limit.

    Raises:
        BadTime: as `finish_instant` and `window_of`.
    """
    ends = []
    if finish_by is not None:
        ends.append(finish_instant(finish_by, where, start))
    if window is not None:
        ends.append(closes_at(window_of(window), where, start))
    return min(ends, default=None)


def is_same_clock(one: tzinfo, other: tzinfo, after: float) -> bool:
    """Whether both show the same wall time on every day of the year that follows."""
    days = (datetime.fromtimestamp(after + n_days * 86400.0, UTC) for n_days in range(366))
    return all(day.astimezone(one).utcoffset() == day.astimezone(other).utcoffset() for day in days)


def told(at: float, where: tzinfo) -> str:
    """Date and wall time, for people."""
    return datetime.fromtimestamp(at, where).strftime("%Y-%m-%d %H:%M")


def _next(minute: int, where: tzinfo, after: float) -> float:
    """The first instant after `after` at which the clock shows that minute of a day (or has just jumped over it)."""
    day = datetime.fromtimestamp(after, where).replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None, fold=0)
    for n_days in range(-1, 4):
        at = _instant(day + timedelta(days=n_days, minutes=minute), where)
        if at > after:
            return at
    raise AssertionError(f"no day has minute {minute}")


def _instant(local: datetime, where: tzinfo) -> float:
    """Of a wall time without a zone."""
    first = local.replace(tzinfo=where, fold=0)
    at = first.timestamp()
    if datetime.fromtimestamp(at, where).replace(tzinfo=None, fold=0) == local:
        return at
    # In a gap the two readings lie on its two sides (PEP 495); the first instant after it lies between them.
    before, after = sorted((at, local.replace(tzinfo=where, fold=1).timestamp()))
    offset = datetime.fromtimestamp(before, where).utcoffset()
    while after - before > 0.5:
        middle = (before + after) / 2
        if datetime.fromtimestamp(middle, where).utcoffset() == offset:
            before = middle
        else:
            after = middle
    return float(round(after))
