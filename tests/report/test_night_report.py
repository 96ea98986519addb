"""The morning report: what a person reads first comes first, in any night, and no trust in names and texts."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from agent.report.night import build_night_html, build_night_markdown, headline, write_night
from agent.report.night.facts import RECENT, sampled
from agent.report.night.markdown import escaped
from agent.report.night.plain_page import plain_html, plain_markdown
from agent.report.night.rows import configuration_rows, failure_rows, spend_rows
from agent.report.night.sample import sample_night
from agent.report.night.sentence import difference
from agent.store.views import Interval, TrialState
from agent.sweeps.views import Change, NightOutcome, NightState, NightSummary

BAD = '<script>alert("x")</script><img src=x onerror=alert(1)>'
IN_ORDER = ("headline", "outcome", "best", "watched", "failures", "configurations", "capacity", "sessions", "history")


class Page(HTMLParser):
    """Ids, tags, addresses and text, as a browser reads them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.tags: set[str] = set()
        self.fetched: list[str] = []
        self.links: list[str] = []
        self.text: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        given = dict(attrs)
        self.ids += [given["id"]] if "id" in given else []
        self.fetched += [given[name] for name in ("src", "srcset", "data", "poster", "action") if name in given]
        for name in ("href", "xlink:href"):
            if name in given:
                (self.links if tag == "a" else self.fetched).append(given[name])

    def handle_data(self, data):
        self.text.append(data)


def without_plots(report):
    """The same night as the first one: plots take time, and these tests are of other things."""
    return replace(report, history=(), missed=())


@pytest.fixture(scope="module")
def report():
    return sample_night()


@pytest.fixture(scope="module")
def html(report):
    return build_night_html(report)


def test_reads_in_the_order_of_what_matters(html):
    ids = Page(html).ids
    assert [name for name in ids if name in IN_ORDER] == list(IN_ORDER)


def test_asks_for_nothing_outside(html):
    page = Page(html)
    assert all(address.startswith("#") for address in page.fetched)
    assert not {"script", "link", "img", "iframe"} & page.tags
    assert not re.search(r"@import|url\((?!#)", html)


def test_parts_of_plots_refer_to_ids_that_are_there_once(html):
    page = Page(html)
    referred = {a.removeprefix("#") for a in page.fetched} | set(re.findall(r"url\(#([^)]+)\)", html))
    assert referred
    assert all(page.ids.count(name) == 1 for name in referred)
    assert "#0a1b" not in html


def test_the_sentence_begins_with_the_regression(report):
    said = headline(report.night, report.summary)
    assert said.startswith("Regression: val_accuracy in digits@main is worse by -0.0117 [-0.0151, -0.0083]")
    assert said.endswith("the default is beaten in 2 of 3 cells.")


def test_a_change_of_time_is_told_in_percent_of_the_reference(report):
    faster = next(w for w in report.summary.watched if w.what == "speed" and w.change is Change.BETTER)
    assert difference(faster) == "-12.8 % [-15.0, -10.4]"


def test_worse_is_shown_before_better_and_unchanged(html):
    section = html[html.index('id="watched"') : html.index('id="failures"')]
    found = re.findall(r'change run">(\w+)<', section)
    assert found[0] == "worse"
    assert found == sorted(found, key=["worse", "better", "unchanged", "unknown"].index)


def test_one_cell_names_its_best_and_how_it_stands_to_the_default():
    one = sample_night(n_nights=1, cells=("digits@main",))
    calm = replace(one.summary, watched=())
    assert re.fullmatch(
        r"Best val_accuracy 0\.9\d+ \[0\.9\d+, 0\.9\d+\], better than the default\.",
        headline(one.night, calm),
    )


def test_skipped_night_says_why_and_measures_nothing(report):
    night = replace(report.night, outcome=NightOutcome.SKIPPED, message="digits-nightly-n23 still ran", cells=())
    skipped = replace(without_plots(report), night=night, summary=NightSummary(), cells=())
    html = build_night_html(skipped)
    assert headline(night, NightSummary()) == "Not run: digits-nightly-n23 still ran."
    assert "best" not in Page(html).ids
    assert "digits-nightly-n23 still ran" in html
    assert "skipped" in build_night_markdown(skipped)


@pytest.mark.parametrize("message", ["", "the data folder was empty"])
def test_failed_night_says_what_happened(report, message):
    night = replace(report.night, outcome=NightOutcome.FAILED, message=message)
    said = headline(night, NightSummary())
    assert said == ("The data folder was empty." if message else "Not one trial gave a value.")


def test_a_cell_without_any_value_is_told_beside_the_others(report):
    broken = replace(report.summary.cells[1], n_measured=0, n_failed=57, best=None, comparison=None)
    summary = replace(report.summary, cells=(report.summary.cells[0], broken), watched=())
    assert headline(report.night, summary).startswith("No trial gave a value in 1 of 2 cells;")


def test_running_night_is_a_page_too(report):
    night = replace(report.night, state=NightState.RUNNING, outcome=None, ended_at=None, message="")
    page = Page(build_night_html(replace(without_plots(report), night=night, summary=NightSummary(), cells=())))
    assert "It still runs; what it comes to is told at its end." in " ".join(page.text)


def test_failures_have_a_line_of_evidence_and_the_most_frequent_comes_first(report):
    trials = report.cells[0].trials
    odd = replace(trials[0], state=TrialState.INVALID, value=None, exit_reason=None, note="nan")
    cells = (replace(report.cells[0], trials=(odd, *trials[1:])), *report.cells[1:])
    rows = failure_rows(replace(report, cells=cells))
    assert [(row.reason, row.count) for row in rows] == [("code error", 6), ("no usable value", 1)]
    assert rows[0].evidence == "ValueError: Solver produced non-finite parameter weights."


def test_failures_of_the_night_before_are_not_counted_again(report):
    late = replace(report, night=replace(report.night, created_at=report.made_at + 1))
    assert failure_rows(late) == ()


def test_configurations_take_turns_between_cells_and_the_rest_is_counted(report):
    rows, n_more = configuration_rows(report)
    assert [row.cell for row in rows[:3]] == [cell.name for cell in report.cells]
    assert len(rows) == 10
    distinct = [len({t.configuration for t in cell.trials if t.state is TrialState.MEASURED}) for cell in report.cells]
    assert len(rows) + n_more == sum(distinct)


def test_spend_is_held_against_the_budget(report):
    rows = {row.name: row for row in spend_rows(report)}
    assert rows["device-hours"].share == pytest.approx(38_412 / 3600 / 12)
    assert rows["cost"].spent == "26.68 USD"
    assert rows["wall time"].share is None


def hostile(report):
    """The sample with markup wherever a person, a task or a job can put text."""
    summary = report.summary
    cells = tuple(replace(b, cell=BAD, metric=BAD, best_params={BAD: BAD}) for b in summary.cells)
    watched = tuple(replace(w, cell=BAD, reason=BAD, reference=BAD) for w in summary.watched)
    bad = replace(summary, cells=cells, watched=watched, notified=(BAD,))
    parts = tuple(
        replace(
            part,
            view=replace(part.view, cell=BAD),
            session=replace(part.session, message=BAD, report_path="javascript:alert(1)"),
            trials=tuple(
                replace(t, note=BAD, exit_reason=BAD, params=dict.fromkeys(t.params, BAD)) for t in part.trials
            ),
            jobs=tuple(j.model_copy(update={"mlflow_url": "javascript:alert(1)"}) for j in part.jobs),
            mlflow_url="javascript:alert(1)",
        )
        for part in report.cells
    )
    night = replace(report.night, message=BAD, file=BAD)
    past = tuple(replace(n, message=BAD, summary=bad) for n in report.history[-3:])
    return replace(report, night=night, summary=bad, cells=parts, history=past, notes=(BAD,))


def test_text_from_outside_is_escaped(report):
    page = Page(build_night_html(hostile(report)))
    assert not {"script", "img"} & page.tags
    assert any("<script>" in text for text in page.text)
    assert not any(link.startswith("javascript:") for link in page.links)


def test_markdown_escapes_what_comes_from_outside(report):
    text = build_night_markdown(hostile(report))
    assert "<script>" not in text
    assert r"\<script\>" in text
    assert "javascript:" not in text


def test_names_of_ten_thousand_letters_do_not_fill_the_page(report):
    long = "x" * 10_000
    cells = tuple(replace(b, cell=long, metric=long, best_params={long: 1}) for b in report.summary.cells[:1])
    night = replace(report.night, message=long)
    odd = replace(without_plots(report), night=night, summary=replace(report.summary, cells=cells), cells=())
    assert "x" * 400 not in build_night_html(odd)
    assert "x" * 400 not in build_night_markdown(odd)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_values_that_are_not_finite_are_shown_and_left_out_of_plots(report, value):
    odd = Interval(estimate=value, low=value, high=value, confidence=0.95, n=1)
    cells = tuple(
        replace(b, best=odd, default_value=value, seconds=value, memory_mb=value) for b in report.summary.cells
    )
    watched = tuple(replace(w, interval=odd) for w in report.summary.watched)
    night = replace(report, summary=replace(report.summary, cells=cells, watched=watched), history=report.history[-3:])
    html = build_night_html(night)
    assert "history" in Page(html).ids
    assert ("NaN" if math.isnan(value) else "∞") in html


def test_the_first_night_has_no_history(report):
    assert "history" not in Page(build_night_html(without_plots(report))).ids


def test_a_missed_start_is_in_the_history(report):
    html = build_night_html(replace(report, history=()))
    assert "missed" in html
    assert "13 Jan" in html
    assert "missed: Wed 13 Jan" in build_night_markdown(replace(report, history=()))


def test_times_are_told_in_the_zone_of_the_sweep(report):
    assert str(report.zone) == "Europe/Berlin"
    assert report.clock(1_800_000_000.0) == "09:00"


def test_old_nights_are_sampled_the_first_the_accepted_and_the_newest_stay(report):
    nights = tuple(replace(report.night, number=n, is_reference=n == 57) for n in range(1, 401))
    kept = [night.number for night in sampled(nights)]
    assert kept[0] == 1
    assert 57 in kept
    assert kept[-RECENT:] == list(range(371, 401))
    assert len(kept) <= 61
    assert kept == sorted(kept)


def test_a_hundred_cells_are_a_page_with_the_rest_folded_away(report):
    best, part = report.summary.cells[1], report.cells[1]
    cells = tuple(replace(best, cell=f"c{n}") for n in range(100))
    parts = tuple(replace(part, view=replace(part.view, cell=f"c{n}"), trials=()) for n in range(100))
    html = build_night_html(replace(without_plots(report), summary=replace(report.summary, cells=cells), cells=parts))
    assert html.count("88 more cells") == 2
    assert all(f">c{n}" in html for n in range(100))


def test_both_files_are_written_and_the_newest_night_is_the_latest(report, tmp_path):
    files = write_night(without_plots(report), tmp_path / "nights")
    latest = tmp_path / "nights" / "digits-nightly-latest.html"
    assert files.html.name == "digits-nightly-n24.html"
    assert latest.read_text() == files.html.read_text()
    older = replace(without_plots(report), is_newest=False, night=replace(report.night, night_id="digits-nightly-n2"))
    write_night(older, tmp_path / "nights")
    assert latest.read_text() == files.html.read_text()
    assert sorted(p.suffix for p in (tmp_path / "nights").iterdir()) == [".html"] * 3 + [".md"] * 3


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("val_accuracy *x*", r"val\_accuracy \*x\*"),
        ("- a\n# b", r"\- a # b"),
        ("1. a", r"1\. a"),
        ("0.97", "0.97"),
        ("a|b `c` <d> [e](f)", r"a\|b \`c\` \<d\> \[e\](f)"),
        ("-0.01", "-0.01"),
        ("---", r"\---"),
    ],
)
def test_markdown_shows_text_as_it_is_written(text, shown):
    assert escaped(text) == shown


def test_everything_that_got_worse_is_shown_and_of_the_rest_some(report):
    worse, calm = report.summary.watched[0], report.summary.watched[1]
    watched = (*(replace(calm, cell=f"c{n}") for n in range(30)), *(replace(worse, cell=f"w{n}") for n in range(30)))
    html = build_night_html(replace(without_plots(report), summary=replace(report.summary, watched=watched)))
    shown, folded = html[html.index('id="watched"') : html.index('id="failures"')].split("<details>")
    assert shown.count('run">worse<') == 30
    assert shown.count('run">unchanged<') == 9
    assert folded.count('run">unchanged<') == 21


def test_one_value_is_not_shown_as_an_interval_without_width(report):
    one = Interval(estimate=0.98, low=0.98, high=0.98, confidence=0.95, n=1)
    summary = replace(report.summary, cells=(replace(report.summary.cells[0], best=one),), watched=())
    assert headline(report.night, summary) == "Best val_accuracy 0.98 (one value), better than the default."


def test_a_plain_page_needs_no_summary_and_escapes_what_people_wrote() -> None:
    night = replace(sample_night(n_nights=2).night, summary=None, message="<b>died</b> at its end")
    html, text = plain_html(night), plain_markdown(night)
    assert "&lt;b&gt;died&lt;/b&gt; at its end" in html
    assert "<b>" not in html
    for page in (html, text):
        assert f"nightlab sweep report {night.night_id}" in page
        assert "ended by its deadline" in page
        assert all(f"session {cell.session_id}" in page for cell in night.cells if cell.session_id)
