"""Times as people and traces write them: `2017-10-02 08:15:00`, `90`, `10m`, `14d`."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from .errors import BadScenario
from .tables import Row
from .workload import Window

_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*([smhd]?)")


def parse_instant(text: str, row: Row) -> float:
    """Seconds since the epoch of a date and time; one without a zone is taken as it stands.

    Raises:
        BadTrace: it is none.
    """
    try:
        return instant(text)
    except ValueError:
        raise row.bad(f"{text!r} is no date and time such as 2017-10-02 08:15:00") from None


def instant(text: str) -> float:
    """
    Raises:
        ValueError: it is no ISO date or date and time.
    """
    parsed = datetime.fromisoformat(text)
    return (parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed).timestamp()


def parse_duration(text: str) -> float:
    """Seconds: `90`, `90s`, `10m`, `1.5h`, `14d`.

    Raises:
        BadScenario: it is none of these.
    """
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise BadScenario(f"{text!r} is no duration; write a number with s, m, h or d, such as 10m")
    return float(match[1]) * _SECONDS[match[2]]


def parse_window(text: str) -> Window:
    """`2017-10-02..2017-10-16`, `0..14d` (from the trace's zero), open at either end.

    Raises:
        BadScenario: it is neither, or ends before it begins.
    """
    first, dots, last = text.partition("..")
    if not dots or not (first or last):
        raise BadScenario(f"window {text!r} can not be understood; write FROM..TO, such as 2017-10-02..2017-10-16")
    window = Window(from_s=_bound(first), to_s=_bound(last))
    if window.from_s is not None and window.to_s is not None and window.to_s <= window.from_s:
        raise BadScenario(f"window {text!r} ends before it begins")
    return window


def _bound(text: str) -> float | None:
    text = text.strip()
    if not text:
        return None
    try:
        return instant(text) if "-" in text else parse_duration(text)
    except ValueError:
        raise BadScenario(f"{text!r} is neither a date such as 2017-10-02 nor a duration such as 14d") from None
