"""What is told of a night, and on which occasion. Pure."""

from __future__ import annotations

from pathlib import Path

from agent.notices.notice import Notice, plain
from agent.report.night.facts import regressions
from agent.report.night.sentence import against_default, best_words, difference, headline, shortened, what_words
from agent.sweeps.sweep import Notification, Occasion
from agent.sweeps.views import NightOutcome, NightSummary, NightView

MAX_LINES = 5
"""Regressions, and cells, that a message names; the page has them all."""
MAX_LINE = 240
TITLES: dict[Occasion, str] = {"failure": "failed", "regression": "regression", "finish": "finished"}


def occasions(night: NightView, summary: NightSummary) -> tuple[Occasion, ...]:
    """What the end of this night is, the most important first. A night that was not begun is no occasion.

    A failure is a night without any value, or a cell in which trials ended and none gave a value.
    """
    if night.outcome is None or night.outcome is NightOutcome.SKIPPED:
        return ()
    found: list[Occasion] = []
    if night.outcome is NightOutcome.FAILED or any(c.n_failed and not c.n_measured for c in summary.cells):
        found.append("failure")
    if regressions(summary):
        found.append("regression")
    return (*found, "finish")


def occasion_for(address: Notification, happened: tuple[Occasion, ...]) -> Occasion | None:
    """The most important one that this address wants; None: it wants none of them."""
    return next((occasion for occasion in happened if occasion in address.on), None)


def notice(night: NightView, summary: NightSummary, occasion: Occasion, report: Path | None) -> Notice:
    """One sentence, then regressions and bests, then where the page is."""
    lines = [headline(night, summary), *_regressions(summary), *_bests(summary)]
    if report is not None:
        lines += ["", f"Report: {report}"]
    return Notice(
        title=plain(shortened(f"{night.night_id}: {TITLES[occasion]}", MAX_LINE)),
        body="\n".join(plain(line) for line in lines),
    )


def _regressions(summary: NightSummary) -> list[str]:
    found = regressions(summary)
    if len(found) < 2:
        return []
    lines = [
        shortened(f"{worse.cell}: {what_words(worse, summary)} worse by {difference(worse)}", MAX_LINE)
        for worse in found[:MAX_LINES]
    ]
    return ["", "Worse than the reference:", *lines, *_more(len(found))]


def _bests(summary: NightSummary) -> list[str]:
    found = [best for best in summary.cells if best.best is not None]
    if not found:
        return []
    lines = [
        shortened(f"{best.cell}: {best_words(best)}, {against_default(best)}", MAX_LINE) for best in found[:MAX_LINES]
    ]
    return ["", *lines, *_more(len(found))]


def _more(count: int) -> list[str]:
    return [f"and {count - MAX_LINES} more"] if count > MAX_LINES else []
