"""Starts of cron lines, where the clocks change, in leap years, and those that did not come."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from agent.sweeps.calendar import BadTime
from agent.sweeps.starts import five_fields, missed_starts, next_starts


def at(zone: str, text: str, fold: int = 0) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold).timestamp()


TABLE = [
    ("Europe/Berlin", "30 22 * * 1-5", "2026-12-04 22:30", ["2026-12-07 22:30", "2026-12-08 22:30"]),
    ("Europe/Berlin", "30 2 * * *", "2026-03-28 12:00", ["2026-03-29 03:00", "2026-03-30 02:30"]),
    ("Europe/Berlin", "30 2 * * *", "2026-10-24 12:00", ["2026-10-25 02:30", "2026-10-26 02:30"]),
    ("America/New_York", "30 2 * * *", "2026-03-07 12:00", ["2026-03-08 03:00", "2026-03-09 02:30"]),
    ("America/Santiago", "30 0 * * *", "2026-09-05 12:00", ["2026-09-06 01:00", "2026-09-07 00:30"]),
    ("Australia/Lord_Howe", "10 2 * * *", "2026-10-03 12:00", ["2026-10-04 02:30", "2026-10-05 02:10"]),
    ("Asia/Tokyo", "0 22 29 2 *", "2026-12-02 12:00", ["2028-02-29 22:00", "2032-02-29 22:00"]),
    ("Asia/Tokyo", "0 22 31 * *", "2026-12-02 12:00", ["2026-12-31 22:00", "2027-01-31 22:00"]),
    ("UTC", "@weekly", "2026-12-02 12:00", ["2026-12-06 00:00", "2026-12-13 00:00"]),
    ("UTC", "0 0 1 * mon", "2026-12-02 12:00", ["2026-12-07 00:00", "2026-12-14 00:00"]),
    ("UTC", "0 0 */2 * 7", "2026-12-02 12:00", ["2026-12-13 00:00", "2026-12-27 00:00"]),
]


@pytest.mark.parametrize(("zone", "line", "after", "expected"), TABLE)
def test_starts_are_those_of_debians_cron(zone: str, line: str, after: str, expected: list[str]) -> None:
    assert next_starts(line, ZoneInfo(zone), at(zone, after), 2) == [at(zone, one) for one in expected]


def test_an_hour_that_comes_twice_starts_once() -> None:
    first, second = next_starts("30 2 * * *", ZoneInfo("Europe/Berlin"), at("Europe/Berlin", "2026-10-24 12:00"), 2)
    assert first == at("Europe/Berlin", "2026-10-25 02:30", fold=0)
    assert second - first == 25 * 3600


BAD = [
    ("61 22 * * *", "minute"),
    ("30 24 * * *", "hour"),
    ("30 22 0 * *", "day of the month"),
    ("30 22 * 13 *", "month"),
    ("30 22 * * 8", "day of the week"),
    ("30 22 * * 5L", "day of the week"),
    ("30 22 L * *", "day of the month"),
    ("30 22 * * 1#2", "day of the week"),
    ("5/15 22 * * *", "minute"),
    ("*/0 22 * * *", "minute"),
    ("50-10 22 * * *", "minute"),
    ("30 22 * *", "five fields"),
    ("0 30 22 * * 1", "five fields"),
    ("@reboot", "five fields"),
    ("", "five fields"),
    ("30 2 30 2 *", "never starts"),
    ("30 2 31 4,6 *", "never starts"),
]


@pytest.mark.parametrize(("line", "named"), BAD)
def test_what_cron_does_not_take_is_refused_with_the_field_named(line: str, named: str) -> None:
    with pytest.raises(BadTime, match=named):
        five_fields(line)


def test_starts_that_a_switched_off_machine_slept_through_are_told() -> None:
    zone, line = ZoneInfo("UTC"), "0 22 * * *"
    since, until = at("UTC", "2026-12-01 12:00"), at("UTC", "2026-12-05 22:02")
    started = [at("UTC", "2026-12-01 22:00") + 2, at("UTC", "2026-12-03 22:00") + 200]
    missed = missed_starts(line, zone, since, until, started=started)
    assert missed == [at("UTC", "2026-12-02 22:00"), at("UTC", "2026-12-04 22:00")]


NIGHTLY = "30 22 * * *"


@pytest.mark.parametrize(
    ("slept", "expected"),
    [
        (("2026-12-02 20:00", "2026-12-02 23:30"), ["2026-12-02 22:30"]),
        (("2026-12-03 06:00", "2026-12-03 09:00"), []),
        (("2026-12-02 20:00", "2026-12-04 12:00"), ["2026-12-02 22:30", "2026-12-03 22:30"]),
        (("2026-12-02 22:31", "2026-12-03 22:29"), []),
    ],
    ids=["over the start", "over the hour", "over two nights", "between two starts"],
)
def test_what_a_suspended_machine_slept_through_is_missed_and_nothing_else(
    slept: tuple[str, str], expected: list[str]
) -> None:
    zone, (begin, end) = ZoneInfo("Europe/Berlin"), slept
    since, until = at("Europe/Berlin", "2026-12-01 12:00"), at("Europe/Berlin", "2026-12-06 12:00")
    asleep = range(int(at("Europe/Berlin", begin)), int(at("Europe/Berlin", end)))
    started = [one for one in next_starts(NIGHTLY, zone, since, 5) if int(one) not in asleep]
    missed = missed_starts(NIGHTLY, zone, since, until, started=started)
    assert missed == [at("Europe/Berlin", one) for one in expected]


@pytest.mark.parametrize(
    ("line", "day"),
    [("30 2 * * *", "2026-03-29"), ("30 2 * * *", "2026-10-25"), ("30 22 * * *", "2028-02-29")],
    ids=["skipped hour", "doubled hour", "leap day"],
)
def test_a_start_that_came_when_the_clocks_changed_is_not_missed(line: str, day: str) -> None:
    zone = ZoneInfo("Europe/Berlin")
    since = at("Europe/Berlin", f"{day} 00:30") - 86400.0
    started = [one + 2.0 for one in next_starts(line, zone, since, 3)]
    until = started[-1] + 3600.0
    assert missed_starts(line, zone, since, until, started=started) == []
    assert [one + 2.0 for one in missed_starts(line, zone, since, until, started=started[::2])] == started[1:2]
