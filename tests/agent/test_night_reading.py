"""Nights as they are read from the store: what was written comes back, and names that are wrong are answered."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from night_rows import put_nights

from agent.report.night.sample import sample_night
from agent.store.night_reading import NightNotFound, NightReading
from agent.store.store import AgentStore
from agent.store.views import Interval
from agent.sweeps.summary_text import summary_from_json, summary_to_json

REPORT = sample_night(n_nights=12)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[AgentStore]:
    opened = AgentStore.open(tmp_path)
    put_nights(opened, reversed(REPORT.nights))
    yield opened
    opened.close()


def test_a_night_is_read_as_it_was_written_with_its_cells(store: AgentStore) -> None:
    assert NightReading(store).night("digits-nightly-n12") == REPORT.nights[-1]


def test_nights_of_a_sweep_are_read_oldest_first(store: AgentStore) -> None:
    found = NightReading(store).nights("digits-nightly")
    assert [night.number for night in found] == list(range(1, 13))
    assert found[:-1] == list(REPORT.history)


def test_a_sweep_s_name_is_its_newest_night(store: AgentStore) -> None:
    assert NightReading(store).named("digits-nightly").number == 12
    assert NightReading(store).named("digits-nightly-n3").number == 3


@pytest.mark.parametrize(
    ("name", "hint"),
    [("digits-nigthly", "did you mean 'digits-nightly'?"), ("zzz", "sweeps that have run: digits-nightly")],
)
def test_an_unknown_name_is_answered_with_what_there_is(store: AgentStore, name: str, hint: str) -> None:
    with pytest.raises(NightNotFound, match="no sweep and no night") as told:
        NightReading(store).named(name)
    assert hint in str(told.value)


def test_where_reports_are_is_kept(store: AgentStore) -> None:
    reading = NightReading(store)
    reading.save_reports("digits-nightly-n12", "/a.html", "/a.md")
    night = reading.night("digits-nightly-n12")
    assert (night.report_html, night.report_markdown) == ("/a.html", "/a.md")
    assert reading.night("digits-nightly-n11").report_html is None


def test_a_summary_comes_back_from_json_as_it_was() -> None:
    text = json.dumps(summary_to_json(REPORT.summary), allow_nan=False)
    assert summary_from_json(json.loads(text)) == REPORT.summary


def test_numbers_that_are_not_finite_come_back_from_json() -> None:
    odd = Interval(estimate=math.inf, low=-math.inf, high=math.inf, confidence=0.95, n=1)
    best = replace(REPORT.summary.cells[0], best=odd, seconds=math.inf, best_params={"mode": "inf"})
    text = json.dumps(summary_to_json(replace(REPORT.summary, cells=(best,))), allow_nan=False)
    read = summary_from_json(json.loads(text))
    assert read is not None
    assert read.cells == (best,)


def test_a_summary_of_an_older_or_newer_nightlab_is_read() -> None:
    data = summary_to_json(REPORT.summary)
    for name in ("n_left", "notified", "cost_usd"):
        del data[name]
    for cell in data["cells"]:
        del cell["memory_mb"]
    read = summary_from_json({**data, "something_new": 1})
    assert read is not None
    assert (read.n_left, read.notified, read.cells[0].memory_mb) == (0, (), None)
    assert read.watched == REPORT.summary.watched


def test_no_summary_stays_none() -> None:
    assert summary_from_json(None) is None
