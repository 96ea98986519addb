"""Times as people write them."""

from __future__ import annotations

from datetime import datetime

import pytest

from nightlab.commands.node import devices_of
from nightlab.failure import Failure
from nightlab.moments import span, until


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
