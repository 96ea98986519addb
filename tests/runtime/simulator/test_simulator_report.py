"""What is told about a simulation adds up."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from scenarios import DATA, excerpt, played, trace_job

from bench.easy import easy_waits
from runtime.scheduling.policy import Policy
from runtime.simulator.cluster import parse_nodes
from runtime.simulator.errors import BadScenario
from runtime.simulator.plot import draw, timeline_of, unit_of
from runtime.simulator.report import report_of, spread

CLASSES = ("critical", "normal")


def test_p50_and_p99_are_values_that_occurred() -> None:
    found = spread(float(n) for n in range(1, 201))
    assert found is not None
    assert (found.mean_s, found.p50_s, found.p99_s, found.max_s) == (100.5, 100.0, 198.0, 200.0)


def test_nothing_has_no_spread() -> None:
    assert spread([]) is None


def test_waits_and_completions_are_told_by_class() -> None:
    ledger = played("1x1", trace_job("j1", 0, 1000), trace_job("j2", 500, 100, priority="critical"))
    report = report_of(ledger, Policy())
    assert [one.name for one in report.classes] == ["critical", "normal"]
    critical, normal = report.classes
    assert critical.wait is not None
    assert normal.completion is not None
    assert (critical.wait.mean_s, normal.completion.mean_s, normal.n_preemptions) == (20.0, 1150.0, 1)


def test_busy_and_idle_time_add_up() -> None:
    report = report_of(played("1x2", trace_job("a", 0, 100), trace_job("b", 50, 50)), Policy())
    assert (report.span_s, report.busy_percent) == (100.0, 75.0)
    assert (report.busy_percent_submitting, report.idle_device_hours) == (50.0, 50.0 / 3600.0)


def test_lost_percent_is_of_what_was_held() -> None:
    report = report_of(
        played("1x1", trace_job("j1", 0, 1000), trace_job("j2", 500, 100, priority="critical")), Policy()
    )
    assert report.lost_percent == pytest.approx(100.0 * 50.0 / 1150.0)


def test_recorded_waits_are_told_only_when_all_are_known() -> None:
    report = report_of(played("1x1", trace_job("j1", 0, 10)), Policy())
    assert report.of_class("normal").recorded_wait is None


def test_the_timeline_holds_all_device_time() -> None:
    ledger = played("3x8", *excerpt()[:150])
    timeline = timeline_of(ledger, CLASSES, n_bins=97)
    width_s = timeline.edges_s[1]
    drawn_s = sum(sum(series) for series in timeline.held.values()) * width_s
    assert drawn_s == pytest.approx(report_of(ledger, Policy()).held_device_s)
    assert max(map(sum, zip(*timeline.held.values(), strict=True))) <= 24 + 1e-6


def test_nobody_waits_at_the_end_of_the_timeline() -> None:
    timeline = timeline_of(played("3x8", *excerpt()[:150]), CLASSES)
    assert timeline.waiting["normal"][-1] == pytest.approx(0.0, abs=1e-6)
    assert max(timeline.waiting["normal"]) > 1


def test_the_picture_is_the_same_each_time(tmp_path: Path) -> None:
    ledger = played("1x2", trace_job("a", 0, 100), trace_job("b", 50, 50, priority="critical"))
    for name in ("one.svg", "two.svg"):
        draw(timeline_of(ledger, CLASSES), tmp_path / name, n_devices=2, title="two jobs")
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
    assert b">devices held<" in (tmp_path / "one.svg").read_bytes()


@pytest.mark.parametrize("name", ["x.gif", "x", "nowhere/x.svg"])
def test_a_picture_that_can_not_be_written_is_refused(tmp_path: Path, name: str) -> None:
    ledger = played("1x2", trace_job("a", 0, 100))
    with pytest.raises(BadScenario):
        draw(timeline_of(ledger, ("normal",)), tmp_path / name, n_devices=2, title="")


def test_the_control_backfills_only_what_delays_no_reservation() -> None:
    """The node is promised to `wide` at 100; `long` would be in its way, `short` is not."""
    jobs = [
        trace_job("a", 0, 100, n=3),
        trace_job("wide", 1, 10, n=4),
        trace_job("long", 2, 200),
        trace_job("short", 3, 50),
    ]
    assert easy_waits(jobs, parse_nodes("1x4")) == {"a": 0.0, "wide": 99.0, "long": 108.0, "short": 0.0}


def test_the_control_lets_later_jobs_use_what_the_reservation_does_not_need() -> None:
    jobs = [trace_job("a", 0, 100, n=3), trace_job("wide", 1, 10, n=4), trace_job("b", 2, 500, n=2)]
    assert easy_waits(jobs, parse_nodes("1x4,1x2"))["b"] == 0.0


def test_the_python_in_the_documentation_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (Path(__file__).parents[3] / "docs" / "simulator.md").read_text()
    (tmp_path / "philly_jobs.csv").write_bytes((DATA / "philly_jobs_400.csv").read_bytes())
    monkeypatch.chdir(tmp_path)
    exec(re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)[0], {})
    assert capsys.readouterr().out.startswith("Spread(mean_s=0.0")


@pytest.mark.parametrize(
    ("span_s", "unit"), [(40.0, "seconds"), (300.0, "minutes"), (86400.0, "hours"), (14 * 86400.0, "days")]
)
def test_the_time_axis_has_a_unit_that_suits_its_length(span_s: float, unit: str) -> None:
    assert unit_of([0.0, span_s])[0] == unit
