"""Numbers as a person reads them."""

from __future__ import annotations

import math

import pytest

from agent.report import wording
from agent.store.views import Interval


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0.9777777, "0.97778"), (1e-7, "1e-7"), (math.nan, "NaN"), (-math.inf, "−∞"), (100, "100")],
)
def test_number(value, text):
    assert wording.number(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(None, "–"), (0.25, "0.2 s"), (59.97, "60.0 s"), (61, "1 min 01 s"), (7320, "2 h 02 min")]
)
def test_duration(seconds, text):
    assert wording.duration(seconds) == text


def test_interval_shows_two_digits_of_its_half_width():
    interval = Interval(estimate=0.025512, low=0.0208, high=0.0301, confidence=0.95, n=5)
    assert wording.estimate(interval, signed=True) == "+0.0255"
    assert wording.bounds(interval) == "[0.0208, 0.0301]"


def test_interval_without_width_can_be_written():
    interval = Interval(estimate=1.0, low=1.0, high=1.0, confidence=0.95, n=2)
    assert (wording.estimate(interval), wording.bounds(interval)) == ("1", "[1, 1]")
    tiny = Interval(estimate=2.9377812e-31, low=2.9377812e-31, high=2.9377812e-31, confidence=0.95, n=2)
    assert wording.estimate(tiny) == "2.938e-31"


def test_tiny_intervals_keep_their_digits():
    interval = Interval(estimate=3.21e-11, low=3.1e-11, high=3.3e-11, confidence=0.95, n=5)
    assert wording.estimate(interval, signed=True) == "+3.21e-11"
    assert wording.bounds(interval) == "[3.1e-11, 3.3e-11]"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.97777, "0.9778"), (4.3131e-5, "4.3e-5"), (-0.012345, "-0.012"), (1234.5, "1234"), (-4.2e-13, "-4e-13")],
)
def test_brief_numbers_keep_their_size(value, text):
    assert wording.brief(value, width=6) == text
