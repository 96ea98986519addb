"""When a cron line starts a sweep: its next starts, and those that should have been. Pure: instants are arguments.

Where the clocks change, starts are those of Debian's cron: what falls into a skipped hour starts right after it, what
falls into an hour that comes twice starts once; lines with a star for minute or hour follow elapsed time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo

from cronsim import CronSim, CronSimError

from .calendar import BadTime

NICKNAMES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
FIELDS = (
    ("minute", "0-59"),
    ("hour", "0-23"),
    ("day of the month", "1-31"),
    ("month", "1-12 or jan-dec"),
    ("day of the week", "0-7 or sun-sat, 0 and 7 are Sunday"),
)
_ITEM = re.compile(r"(\*|[0-9]+|[a-z]{3})(-([0-9]+|[a-z]{3}))?(/[0-9]+)?")
MAX_MISSED = 1000


def five_fields(text: str) -> str:
    """The expression with single spaces, nicknames such as `@daily` written out.

    Raises:
        BadTime: cron would not take it, or it never comes to a start; the message names the field.
    """
    given = text.strip().lower()
    parts = NICKNAMES.get(given, given).split()
    if len(parts) != len(FIELDS):
        raise BadTime(
            f"{text!r} is no cron line: it needs five fields, minute, hour, day of the month, month, day of the week. "
            'Write for example "30 22 * * 1-5": at 22:30 from Monday to Friday'
        )
    for place, (part, (name, allowed)) in enumerate(zip(parts, FIELDS, strict=True)):
        if not _is_field(part, place):
            raise BadTime(
                f"{part!r} is no {name} in {text!r}; allowed: {allowed}, *, lists (1,5), ranges (1-5), "
                "steps of a range (*/2, 1-9/2)"
            )
    expression = " ".join(parts)
    try:
        next(CronSim(expression, datetime(2000, 1, 1, tzinfo=UTC)))
    except (CronSimError, StopIteration):
        raise BadTime(f"{text!r} never starts: no month that it names has such a day") from None
    return expression


def _is_field(part: str, place: int) -> bool:
    for item in part.split(","):
        found = _ITEM.fullmatch(item)
        is_range = found is not None and (found[1] == "*" or found[2] is not None)
        if found is None or (found[1] == "*" and found[2] is not None) or (found[4] is not None and not is_range):
            return False
    alone = ["*"] * len(FIELDS)
    alone[place] = part
    try:
        CronSim(" ".join(alone), datetime(2000, 1, 1, tzinfo=UTC))
    except CronSimError:
        return part.isdigit() and place == 2 and 1 <= int(part) <= 31
    return True


def next_starts(expression: str, where: tzinfo, after: float, n: int) -> list[float]:
    """The first `n` starts after an instant.

    Raises:
        BadTime: as `five_fields`.
    """
    found: list[float] = []
    for start in CronSim(five_fields(expression), datetime.fromtimestamp(after, where)):
        at = start.timestamp()
        if at > after:
            found.append(at)
        if len(found) == n:
            break
    return found


def missed_starts(
    expression: str, where: tzinfo, since: float, until: float, *, started: Sequence[float], tolerance_s: float = 300.0
) -> list[float]:
    """Starts after `since` and due before `until` that did not come: nothing in `started` within the tolerance.

    A start has missed nothing before its tolerance is over. The newest 1000 at most.

    Raises:
        BadTime: as `five_fields`.
    """
    missed: list[float] = []
    for start in CronSim(five_fields(expression), datetime.fromtimestamp(since, where)):
        at = start.timestamp()
        if at + tolerance_s >= until:
            break
        if at > since and not any(at - 60.0 <= one <= at + tolerance_s for one in started):
            missed = [*missed[-MAX_MISSED + 1 :], at]
    return missed
