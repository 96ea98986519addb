"""Times as people write them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime

import pytest

from nightlab.commands.node import devices_of
from nightlab.failure import Failure
from nightlab.moments import coming, span, told, until


def at(*parts: int) -> float:
    """By this machine's clock."""
    return datetime(*parts).astimezone().timestamp()  # type: ignore[arg-type]


NOW = at(2026, 12, 24, 17, 30)


@pytest.mark.parametrize(
    ("text", "then"),
    [
        ("18:00", at(2026, 12, 24, 18, 0)),
        ("17:30", at(2026, 12, 25, 17, 30)),
        ("9:05", at(2026, 12, 25, 9, 5)),
        ("90m", at(2026, 12, 24, 19, 0)),
        ("+90m", at(2026, 12, 24, 19, 0)),
        ("2026-12-31 12:00", at(2026, 12, 31, 12, 0)),
    ],
)
def test_a_time_to_come_is_read(text: str, then: float) -> None:
    assert until(text, now=NOW, option="--until") == then


@pytest.mark.parametrize("text", ["", "soon", "25:00", "-2h", "infh"])
def test_no_time_is_refused_with_what_is_allowed(text: str) -> None:
    with pytest.raises(Failure, match="write 18:00, 2h or"):
        until(text, now=NOW, option="--until")


def test_a_length_of_time_is_read() -> None:
    assert [span(text) for text in ("7d", "2h", "5", "xh")] == [7 * 86400.0, 7200.0, None, None]


def test_devices_of_a_node_are_read() -> None:
    assert devices_of("local:0,2-4") == ("local", (0, 2, 3, 4))


@pytest.mark.parametrize("text", ["local", ":0", "local:", "local:a", "local:1-", "local:-1"])
def test_what_names_no_devices_is_refused(text: str) -> None:
    with pytest.raises(Failure, match="names no devices"):
        devices_of(text)


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This machine's clock shows the time of Berlin."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Europe/Berlin")
        time.tzset()
        yield
    time.tzset()


def utc(text: str) -> float:
    return datetime.fromisoformat(f"{text}+00:00").timestamp()


@pytest.mark.usefixtures("berlin")
@pytest.mark.parametrize(
    ("text", "now", "then"),
    [
        ("07:00", "2026-03-28 21:30", "2026-03-29 05:00"),
        ("07:00", "2026-10-24 20:30", "2026-10-25 06:00"),
        ("02:30", "2026-03-28 21:30", "2026-03-29 01:00"),
        ("2026-03-29 02:59", "2026-03-28 21:30", "2026-03-29 01:00"),
        ("02:30", "2026-10-24 20:30", "2026-10-25 00:30"),
    ],
    ids=[
        "over the change to summer",
        "over the change to winter",
        "in the gap",
        "a date in the gap",
        "the first of two",
    ],
)
def test_a_clock_that_is_changed_tonight_is_read_as_it_will_be(text: str, now: str, then: str) -> None:
    assert until(text, now=utc(now), option="--finish-by") == utc(then)


@pytest.mark.usefixtures("berlin")
def test_a_time_is_told_by_the_clock_and_with_its_date_when_that_is_not_plain() -> None:
    now = utc("2026-12-02 20:00")
    times = [told(utc(each), now=now) for each in ("2026-12-03 06:00", "2026-12-05 06:00", "2026-12-02 19:00")]
    assert times == ["07:00", "2026-12-05 07:00", "2026-12-02 20:00"]


@pytest.mark.parametrize(
    ("now", "hours"),
    [
        ("2026-03-28T22:30:00+01:00", 7.5),
        ("2026-10-24T22:30:00+02:00", 9.5),
        ("2026-10-23T22:30:00+02:00", 8.5),
    ],
)
def test_the_next_morning_is_as_far_as_the_night_is_long(
    now: str, hours: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        began = datetime.fromisoformat(now).timestamp()
        assert (until("07:00", now=began, option="--finish-by") - began) / 3600 == hours
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_time_that_is_past_is_refused() -> None:
    with pytest.raises(Failure, match="is past"):
        coming("2026-12-24 17:30", now=NOW, option="--finish-by")
    assert coming("2026-12-24 17:31", now=NOW, option="--finish-by") == NOW + 60
