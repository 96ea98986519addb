"""The report: everything in it, nothing from outside, and no trust in names and texts."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from matplotlib.figure import Figure

from agent.report import build_report, write_report
from agent.report.figures import set_range
from agent.report.sample import TASK, configuration_of, sample_report_input
from agent.store.views import ModelCallView, Purpose, SessionState, TrialState
from agent.task import FloatParameter, Model, Task

SECTIONS = (
    "verdict",
    "configuration",
    "hypotheses",
    "best-so-far",
    "seeds",
    "effects",
    "curves",
    "slots",
    "preemptions",
    "proposers",
    "trials",
    "failures",
    "budget",
    "held-out",
    "how",
    "activity",
)


class Page(HTMLParser):
    """Ids, tags and the addresses that a browser would fetch or follow."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.tags: set[str] = set()
        self.fetched: list[str] = []
        self.links: list[str] = []
        self.svg_ids: list[str] = []
        self.text: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        given = dict(attrs)
        if "id" in given:
            self.ids.append(given["id"])
        for name in ("src", "srcset", "data", "poster", "action"):
            if name in given:
                self.fetched.append(given[name])
        for name in ("href", "xlink:href"):
            if name in given:
                (self.links if tag == "a" else self.fetched).append(given[name])

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def facts():
    return sample_report_input()


@pytest.fixture(scope="module")
def html(facts):
    return build_report(facts)


def test_has_every_section(html):
    assert set(SECTIONS) <= set(Page(html).ids)


def test_asks_for_nothing_outside(html):
    page = Page(html)
    assert all(address.startswith("#") for address in page.fetched)
    assert "script" not in page.tags
    assert "link" not in page.tags
    assert not re.search(r"@import|url\((?!#)", html)


def test_parts_of_figures_refer_to_ids_that_are_there_once(html):
    page = Page(html)
    referred = {a.removeprefix("#") for a in page.fetched} | set(re.findall(r"url\(#([^)]+)\)", html))
    assert referred
    assert all(page.ids.count(name) == 1 for name in referred)


def test_figures_take_their_colors_from_the_page(html):
    assert "var(--best)" in html
    assert "var(--search)" in html
    assert "#0a1b" not in html


def test_verdict_and_sentence_come_first(html, facts):
    text = " ".join(Page(html).text)
    assert facts.session.result is not None
    assert text.index(facts.session.result.sentence) < text.index("All trials")
    assert "supported" in text


def test_every_trial_has_a_row(html, facts):
    rows = re.findall(r'<tr class="(?:best|bad)?"><td class="n">(\d+)</td>', html)
    assert [int(r) for r in rows] == [t.number for t in facts.trials]


def test_the_value_of_a_held_out_look_is_not_told_as_the_objective_s(html, facts):
    section = html[html.index('id="trials"') : html.index('id="failures"')]
    assert section.count(f'<div class="quiet">{facts.task.held_out.metric}</div>') == 1


def test_failures_are_counted_by_reason(html):
    section = html[html.index('id="failures"') : html.index('id="budget"')]
    assert "code_error" in section
    assert ">2<" in section
    assert "6, 11" in section


def test_preemption_names_victim_beneficiary_checkpoint_and_run(html, facts):
    section = html[html.index('id="preemptions"') : html.index('id="trials"')]
    (victim,) = [job for job in facts.jobs if job.n_preemptions]
    for told in (victim.job_id, "j10", "step 41", "attempt 2", victim.run_id):
        assert told in section


def hostile(facts):
    """The sample with markup wherever a person, a task or a job can put text."""
    bad = '<script>alert("x")</script><img src=x onerror=alert(1)>'
    document = TASK.model_dump(mode="json")
    document["space"] = {bad: document["space"]["lr"], "$\\frac{": document["space"]["activation"]}
    document["description"] = bad
    document["objective"]["metric"] = bad
    task = Task.model_validate(document)
    trials = tuple(
        replace(
            t, params={bad: t.params["lr"], "$\\frac{": t.params["activation"]}, why=bad, note=bad, exit_reason=None
        )
        for t in facts.trials
    )
    activity = tuple(replace(a, text=bad) for a in facts.activity)
    jobs = tuple(j.model_copy(update={"mlflow_url": "javascript:alert(1)"}) for j in facts.jobs)
    return replace(
        facts,
        task=task,
        trials=trials,
        activity=activity,
        jobs=jobs,
        session=replace(facts.session, message=bad, task_name=bad),
        mlflow_url="javascript:alert(1)",
    )


@pytest.fixture(scope="module")
def hostile_html(facts):
    return build_report(hostile(facts))


def test_text_from_outside_is_escaped(hostile_html):
    page = Page(hostile_html)
    assert "script" not in page.tags
    assert "img" not in page.tags
    assert any("<script>" in text for text in page.text)


def test_only_web_addresses_become_links(html, hostile_html):
    assert Page(html).links
    assert not any(link.startswith("javascript:") for link in Page(hostile_html).links)


@pytest.mark.parametrize("value", [math.nan, -math.inf])
def test_trial_that_is_not_finite_is_shown_and_left_out_of_figures(facts, value):
    odd = replace(facts.trials[3], value=value)
    html = build_report(replace(facts, trials=(*facts.trials[:3], odd, *facts.trials[4:])))
    assert "not a finite number" in html
    assert {"best-so-far", "effects"} <= set(Page(html).ids)


def test_session_without_trials_says_so(facts):
    session = replace(facts.session, result=None, state=SessionState.RUNNING, n_trials=0)
    html = build_report(replace(facts, session=session, trials=(), jobs=(), points={}, activity=(), looks=(), nodes=()))
    page = Page(html)
    assert "No trial has been measured yet." in " ".join(page.text)
    assert "best-so-far" not in page.ids
    assert {"verdict", "trials", "budget"} <= set(page.ids)


def test_session_where_everything_failed(facts):
    trials = tuple(
        replace(t, state=TrialState.INVALID, value=None, exit_reason="code_error")
        for t in facts.trials
        if t.purpose is Purpose.SEARCH
    )
    session = replace(facts.session, result=None, state=SessionState.FAILED, message="every trial failed")
    html = build_report(replace(facts, session=session, trials=trials, points={}))
    assert "every trial failed" in html
    assert "code_error" in html
    assert '<span class="pill bad">failed</span>' in html
    assert "No trial gave a value." in html


def test_default_that_stays_best_has_no_seed_comparison(facts):
    result = facts.session.result
    assert result is not None
    same = replace(
        result,
        best=result.default,
        best_configuration=result.default_configuration,
        difference=None,
        comparison="indistinguishable",
        verdict="inconclusive",
        held_out_value=None,
    )
    html = build_report(replace(facts, session=replace(facts.session, result=same)))
    assert "seeds" not in Page(html).ids
    assert "inconclusive" in html


def test_single_trial_and_equal_values_can_be_drawn(facts):
    first = facts.trials[0]
    twins = tuple(
        replace(first, trial_id=f"s1-t{n}", number=n, value=0.5, configuration=configuration_of({"n": n}))
        for n in (1, 2)
    )
    for trials in (twins[:1], twins):
        html = build_report(replace(facts, trials=trials, session=replace(facts.session, result=None)))
        assert "best-so-far" in Page(html).ids


@pytest.mark.parametrize(("is_log", "places"), [(True, [0.01, 0.5]), (False, [-0.3, 0.05]), (True, [0.02])])
def test_the_axis_of_an_effect_holds_what_was_tried_beyond_the_range_and_shows_its_ends(is_log, places):
    parameter = FloatParameter(type="float", low=0.001, high=0.1, log=is_log, default=0.01)
    ax = Figure().add_subplot()
    set_range(ax, parameter, places)
    low, high = ax.get_xlim()
    assert low < min(0.001, *places)
    assert max(0.1, *places) < high
    ends = [line.get_xdata()[0] for line in ax.get_lines()]
    assert ends == ([] if places == [0.02] else [0.001, 0.1])


def test_written_file_replaces_the_older_one_whole(facts, tmp_path):
    path = tmp_path / "reports" / "s1.html"
    path.parent.mkdir()
    path.write_text("old")
    assert write_report(facts, path) == path
    assert path.read_text(encoding="utf-8").rstrip().endswith("</html>")
    assert list(path.parent.iterdir()) == [path]


def with_model(facts, name="small", outcomes=("used", "unusable", "timed_out", "over_budget")):
    task = facts.task.model_copy(update={"model": Model(name=name)})
    calls = tuple(
        ModelCallView(
            call_id=n, at=facts.made_at, purpose="suggest", prompt_version=None, model="m", rung="tools",
            outcome=outcome, prompt_tokens=1000, completion_tokens=5, cost_usd=0.25, took_s=1.0,
        )
        for n, outcome in enumerate(outcomes)
    )  # fmt: skip
    return replace(facts, task=task, model_calls=calls)


def test_lost_turns_of_a_model_are_told_with_their_reasons_and_what_they_cost(facts):
    page = build_report(with_model(facts))
    section = page[page.index('<section id="model">') :].partition("</section>")[0]
    cells = dict(re.findall(r"<tr><td>([^<]*)</td><td class=\"n\">([^<]*)</td></tr>", section))
    assert (cells["calls"], cells["answered"], cells["lost"]) == ("3", "1", "2 (66.7 %)")
    assert (cells["lost: unusable"], cells["lost: timed out"]) == ("1", "1")
    assert (cells["tokens"], cells["cost in USD"]) == ("4,020", "1")
    assert "<thead>" not in section


def test_steps_of_the_ladder_are_told_and_the_name_of_a_model_is_escaped(facts):
    page = build_report(with_model(facts, name="<b>m", outcomes=("unusable",) * 4))
    section = page[page.index('<section id="model">') :].partition("</section>")[0]
    assert "<td>schema</td><td>tools</td>" in section
    assert "&lt;b&gt;m" in section
    assert "<b>m" not in page


def test_a_session_without_a_model_has_no_section_of_one(html):
    assert 'id="model"' not in html
