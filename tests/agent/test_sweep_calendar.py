"""When nights may run: wall clocks that jump, leap days, windows across midnight."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from agent.sweeps.calendar import (
    BadTime,
    closes_at,
    deadline_of,
    finish_instant,
    is_open,
    opens_at,
    window_of,
    zone,
)

BERLIN = "Europe/Berlin"


def at(text: str, name: str = BERLIN, fold: int = 0) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(name), fold=fold).timestamp()


@pytest.mark.parametrize(
    ("finish", "name", "start", "end"),
    [
        ("07:00", BERLIN, at("2026-12-02 22:30"), at("2026-12-03 07:00")),
        ("07:00", BERLIN, at("2026-12-02 06:59"), at("2026-12-02 07:00")),
        ("07:00", BERLIN, at("2026-12-02 07:00"), at("2026-12-03 07:00")),
        ("07:00", BERLIN, at("2026-12-31 22:30"), at("2027-01-01 07:00")),
        ("07:00", BERLIN, at("2028-02-28 22:30"), at("2028-02-29 07:00")),
        ("07:00", BERLIN, at("2027-02-28 22:30"), at("2027-03-01 07:00")),
        # a night of 7.5 hours on the clock and 7 in fact, and one of 9
        ("06:00", BERLIN, at("2026-03-28 22:30"), at("2026-03-28 22:30") + 6.5 * 3600),
        ("06:00", BERLIN, at("2026-10-24 22:30"), at("2026-10-24 22:30") + 8.5 * 3600),
        # 02:30 does not exist: the first instant after the gap, 03:00 summer time
        ("02:30", BERLIN, at("2026-03-28 22:30"), at("2026-03-29 03:00")),
        # 02:30 comes twice: the first one
        ("02:30", BERLIN, at("2026-10-24 22:30"), at("2026-10-25 02:30", fold=0)),
        # and after it has come, the next day's
        ("02:30", BERLIN, at("2026-10-25 02:40", fold=0), at("2026-10-26 02:30")),
        (
            "02:30",
            "America/New_York",
            at("2026-03-07 22:00", "America/New_York"),
            at("2026-03-08 03:00", "America/New_York"),
        ),
        # a jump of half an hour: 02:00 to 02:30
        (
            "02:15",
            "Australia/Lord_Howe",
            at("2026-10-03 22:00", "Australia/Lord_Howe"),
            at("2026-10-04 02:30", "Australia/Lord_Howe"),
        ),
        # begun in the hour that comes twice, its first and its second time
        ("07:00", BERLIN, at("2026-10-25 02:30", fold=0), at("2026-10-25 02:30", fold=0) + 5.5 * 3600),
        ("07:00", BERLIN, at("2026-10-25 02:30", fold=1), at("2026-10-25 02:30", fold=1) + 4.5 * 3600),
        ("03:00", BERLIN, at("2026-10-25 02:59", fold=0), at("2026-10-25 02:59", fold=0) + 3660),
        # begun right after the hour that is skipped, and in the minute before it
        ("07:00", BERLIN, at("2026-03-29 03:00"), at("2026-03-29 03:00") + 4 * 3600),
        ("02:30", BERLIN, at("2026-03-29 01:59"), at("2026-03-29 01:59") + 60),
        ("02:30", BERLIN, at("2026-03-29 03:00"), at("2026-03-30 02:30")),
        # a zone that skips midnight: the day begins at 01:00
        (
            "00:00",
            "America/Santiago",
            at("2026-09-05 22:00", "America/Santiago"),
            at("2026-09-06 01:00", "America/Santiago"),
        ),
        ("2026-03-29 02:30", BERLIN, at("2026-03-28 22:30"), at("2026-03-29 03:00")),
        ("2026-10-25 02:30", BERLIN, at("2026-10-24 22:30"), at("2026-10-25 02:30", fold=0)),
        ("2028-02-29 07:00", BERLIN, at("2028-02-27 22:30"), at("2028-02-29 07:00")),
        ("07:00", BERLIN, at("2028-02-29 22:30"), at("2028-03-01 07:00")),
        ("2026-12-24 07:00", BERLIN, at("2026-12-02 22:30"), at("2026-12-24 07:00")),
        ("2026-12-24T07:00+00:00", BERLIN, at("2026-12-02 22:30"), at("2026-12-24 08:00")),
    ],
)
def test_finish_by_is_the_next_such_time_of_the_wall_clock(finish: str, name: str, start: float, end: float) -> None:
    assert finish_instant(finish, zone(name), start) == end


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("25:00", "is no time; write 07:00"),
        ("7", "is no time"),
        ("2020-01-01 07:00", "is past: it is 2026-12-02 22:30 now"),
    ],
)
def test_a_time_that_can_not_be_kept_is_refused_with_what_to_write(text: str, said: str) -> None:
    with pytest.raises(BadTime, match=said):
        finish_instant(text, zone(BERLIN), at("2026-12-02 22:30"))


@pytest.mark.parametrize(
    ("window", "moment", "expected"),
    [
        ("22:00-07:00", "2026-12-02 22:00", True),
        ("22:00-07:00", "2026-12-03 06:59", True),
        ("22:00-07:00", "2026-12-03 07:00", False),
        ("22:00-07:00", "2026-12-03 21:59", False),
        ("09:00-17:30", "2026-12-03 17:29", True),
        ("09:00-17:30", "2026-12-03 17:30", False),
        ("09:00-17:30", "2026-12-03 08:59", False),
    ],
)
def test_a_window_has_its_first_minute_and_not_its_last(window: str, moment: str, expected: bool) -> None:
    assert is_open(window_of(window), zone(BERLIN), at(moment)) is expected


@pytest.mark.parametrize(
    ("window", "now", "expected"),
    [
        # closed at the first 02:30: the second one opens nothing
        ("22:00-02:30", at("2026-10-25 02:15", fold=0), True),
        ("22:00-02:30", at("2026-10-25 02:30", fold=0), False),
        ("22:00-02:30", at("2026-10-25 02:15", fold=1), False),
        # open since the first 02:30, and not closed in between
        ("02:30-07:00", at("2026-10-25 02:15", fold=0), False),
        ("02:30-07:00", at("2026-10-25 02:30", fold=0), True),
        ("02:30-07:00", at("2026-10-25 02:15", fold=1), True),
        ("02:15-02:45", at("2026-10-25 02:30", fold=0), True),
        ("02:15-02:45", at("2026-10-25 02:30", fold=1), False),
        # its first minutes are skipped, its last ones, all of it
        ("02:30-07:00", at("2026-03-29 01:59"), False),
        ("02:30-07:00", at("2026-03-29 03:00"), True),
        ("22:00-02:30", at("2026-03-29 01:59"), True),
        ("22:00-02:30", at("2026-03-29 03:00"), False),
        ("02:15-02:45", at("2026-03-29 01:59"), False),
        ("02:15-02:45", at("2026-03-29 03:00"), False),
        # on the day that there is every four years, and into the one after it
        ("22:00-07:00", at("2028-02-29 06:59"), True),
        ("22:00-07:00", at("2028-02-29 22:00"), True),
        ("22:00-07:00", at("2028-03-01 07:00"), False),
    ],
)
def test_a_window_is_open_once_a_night_whatever_the_clock_does(window: str, now: float, expected: bool) -> None:
    where, hours = zone(BERLIN), window_of(window)
    assert is_open(hours, where, now) is expected
    if expected:
        assert closes_at(hours, where, now) - now < 10 * 3600, "a night that begins now ends in this night"


def test_a_window_opens_and_closes_next_by_the_wall_clock() -> None:
    now = at("2026-10-24 23:00")
    assert closes_at(window_of("22:00-07:00"), zone(BERLIN), now) == at("2026-10-25 07:00")
    assert opens_at(window_of("22:00-07:00"), zone(BERLIN), now) == at("2026-10-25 22:00")


@pytest.mark.parametrize("text", ["22:00", "22-7", "22:00-22:00", "24:00-07:00", ""])
def test_a_window_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(BadTime):
        window_of(text)


def test_the_earlier_end_counts() -> None:
    where, start = zone(BERLIN), at("2026-12-02 22:30")
    assert deadline_of("06:30", "22:00-07:00", where, start) == at("2026-12-03 06:30")
    assert deadline_of("09:00", "22:00-07:00", where, start) == at("2026-12-03 07:00")
    assert deadline_of(None, "22:00-07:00", where, start) == at("2026-12-03 07:00")
    assert deadline_of(None, None, where, start) is None


def test_an_unknown_zone_is_refused_with_a_name_near_it() -> None:
    with pytest.raises(BadTime, match="did you mean 'Europe/Berlin'"):
        zone("Europe/Berln")
