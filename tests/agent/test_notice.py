"""What is told of a night, to whom, and on which occasion."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from agent.notices.notice import plain
from agent.report.night.sample import sample_night
from agent.sweeps.notice import notice, occasion_for, occasions
from agent.sweeps.sweep import Notification
from agent.sweeps.views import NightOutcome, NightSummary

REPORT = sample_night(n_nights=12)
CALM = replace(REPORT.summary, watched=())


@pytest.mark.parametrize(
    ("outcome", "summary", "expected"),
    [
        (NightOutcome.DONE, CALM, ("finish",)),
        (NightOutcome.DEADLINE, CALM, ("finish",)),
        (NightOutcome.DONE, REPORT.summary, ("regression", "finish")),
        (NightOutcome.FAILED, NightSummary(), ("failure", "finish")),
        (NightOutcome.SKIPPED, NightSummary(), ()),
        (None, REPORT.summary, ()),
    ],
)
def test_a_night_is_these_occasions(outcome, summary, expected):
    assert occasions(replace(REPORT.night, outcome=outcome), summary) == expected


def test_a_cell_in_which_everything_failed_is_a_failure_although_the_night_ended_well():
    broken = replace(CALM.cells[0], n_measured=0, n_failed=5, best=None)
    night = replace(REPORT.night, outcome=NightOutcome.DONE)
    assert occasions(night, replace(CALM, cells=(broken, *CALM.cells[1:]))) == ("failure", "finish")


def test_an_address_gets_one_message_named_after_the_most_important_occasion_it_wants():
    happened = ("failure", "regression", "finish")
    assert occasion_for(Notification(url="json://a", on=("finish", "regression")), happened) == "regression"
    assert occasion_for(Notification(url="json://a", on=("failure",)), ("finish",)) is None


def test_a_message_begins_with_the_sentence_and_ends_with_where_the_page_is():
    told = notice(REPORT.night, REPORT.summary, "regression", Path("/home/x.html"))
    lines = told.body.splitlines()
    assert told.title == "digits-nightly-n12: regression"
    assert lines[0].startswith("Regression: val_accuracy in digits@main is worse by -0.0117")
    assert lines[-1] == "Report: /home/x.html"
    assert any(line.startswith("digits@main/v2: best val_accuracy") for line in lines)


def test_a_message_of_many_cells_stays_short():
    cells = tuple(replace(CALM.cells[0], cell=f"c{n}" + "x" * 10_000) for n in range(100))
    watched = tuple(replace(REPORT.summary.watched[0], cell=cell.cell) for cell in cells)
    body = notice(REPORT.night, replace(CALM, cells=cells, watched=watched), "regression", None).body
    assert body.count("and 95 more") == 2
    assert len(body) < 4000


def test_no_text_becomes_a_call_a_link_or_a_control_character():
    assert plain("<!channel> @everyone @Here digits@main a\x1b[31mb") == (
        "‹!channel› @\u200beveryone @\u200bHere digits@main a [31mb"
    )
