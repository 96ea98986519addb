"""One night as one HTML file that needs nothing else: no network, no scripts; light, dark, paper, phone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from agent.report import wording
from agent.report.tables import web_address
from agent.sweeps.views import Change, NightOutcome, NightState, NightView, WatchResult

from . import history, rows, sentence
from .facts import NightReport, regressions, sampled, watched_in_order

CHANGE_CLASS = {Change.WORSE: "bad", Change.BETTER: "good"}
OUTCOME_CLASS = {
    NightOutcome.DONE: "good",
    NightOutcome.FAILED: "bad",
    NightOutcome.SKIPPED: "open",
}
COMPARISON_CLASS = {"better": "good", "worse": "bad"}
SHOWN_CELLS = 12
"""More are folded away."""
SHOWN_WATCHED = 9
"""Watched things that are shown after those that got worse; more are folded away."""
MAX_NIGHT_ROWS = 14


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchRow:
    result: WatchResult
    what: str
    difference: str
    mark: Markup
    css: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NightRow:
    """One night of the history."""

    night: NightView
    outcome: str
    css: str
    n_worse: int
    words: str


def build_night_html(report: NightReport) -> str:
    """The whole page. Everything that comes from people, tasks or jobs is escaped."""
    environment = Environment(
        loader=PackageLoader("agent.report", "."),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    night, by_cell = report.night, history.series(report)
    configurations, n_more = rows.configuration_rows(report)
    watched = watch_rows(report)
    n_shown = sum(row.css == "bad" for row in watched) + SHOWN_WATCHED
    return environment.get_template("night/night.html.j2").render(
        report=report,
        night=night,
        summary=report.summary,
        cells=[(cell, _report_address(cell.session.report_path if cell.session else None)) for cell in report.cells],
        measured=[best for best in report.summary.cells if best.n_trials or best.best is not None],
        w=wording,
        s=sentence,
        comparison_class=COMPARISON_CLASS,
        headline=sentence.headline(night, report.summary),
        outcome=sentence.outcome_words(night),
        outcome_class=outcome_class(report),
        is_over=night.state is NightState.ENDED,
        shown_cells=SHOWN_CELLS,
        watched=watched[:n_shown],
        watched_more=watched[n_shown:],
        failures=rows.failure_rows(report),
        configurations=configurations,
        n_more_configurations=n_more,
        capacity=rows.capacity_rows(report),
        spend=rows.spend_rows(report),
        nights=night_rows(report),
        max_night_rows=MAX_NIGHT_ROWS,
        metric_panels=history.metric_panels(report, by_cell),
        cost_panels=history.cost_panels(report, by_cell),
        n_panels=history.MAX_PANELS,
        n_cells_known=len(by_cell),
        web_address=web_address,
    )


def outcome_class(report: NightReport) -> str:
    if regressions(report.summary):
        return "bad"
    return "open" if report.night.outcome is None else OUTCOME_CLASS.get(report.night.outcome, "open")


def watch_rows(report: NightReport) -> tuple[WatchRow, ...]:
    """Worse first. The marks of one kind share a scale, those of the metric one for each metric."""
    results = watched_in_order(report.summary)
    kinds = {id(r): r.what if r.what != "metric" else sentence.what_words(r, report.summary) for r in results}
    reach: dict[str, float] = {}
    for r in results:
        if r.interval is not None:
            kind = kinds[id(r)]
            reach[kind] = max(reach.get(kind, 0.0), history.reach_of((r.interval.low, r.interval.high)))
    return tuple(
        WatchRow(
            result=r,
            what=sentence.what_words(r, report.summary),
            difference=sentence.difference(r),
            mark=Markup("")
            if r.interval is None
            else history.interval_mark(r.interval.low, r.interval.estimate, r.interval.high, reach[kinds[id(r)]]),
            css=CHANGE_CLASS.get(r.change, ""),
        )
        for r in results
    )


def night_rows(report: NightReport) -> tuple[NightRow, ...]:
    """Oldest first, tonight last."""
    found = []
    for night in sampled(report.nights):
        n_worse = 0 if night.summary is None else len(regressions(night.summary))
        css = "bad" if n_worse else OUTCOME_CLASS.get(night.outcome, "open") if night.outcome else "open"
        found.append(
            NightRow(
                night=night,
                outcome=sentence.outcome_words(night),
                css="skipped" if night.outcome is NightOutcome.SKIPPED else css,
                n_worse=n_worse,
                words="" if night.summary is None else sentence.headline(night, night.summary),
            )
        )
    return tuple(found)


def _report_address(path: str | None) -> str | None:
    """As the browser opens it from the disk."""
    return None if path is None or not Path(path).is_absolute() else Path(path).as_uri()
