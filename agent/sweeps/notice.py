"""What is told of a night, and on which occasion. Pure; `telling` sends it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from agent.report.night.facts import regressions
from agent.report.night.sentence import against_default, best_words, difference, headline, shortened, what_words
from agent.sweeps.sweep import Notification, Occasion
from agent.sweeps.views import NightOutcome, NightSummary, NightView

MAX_LINES = 5
"""Regressions, and cells, that a message names; the page has them all."""
MAX_LINE = 240
TITLES: dict[Occasion, str] = {"failure": "failed", "regression": "regression", "finish": "finished"}
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
CALLS = re.compile(r"@(?=everyone|here|channel|all\b)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Plain text: no service takes any of it for markup, a link or a call to everybody."""

    title: str
    body: str


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


def trial_notice(sweep: str) -> Notice:
    """What `nightlab sweep notify --test` sends."""
    return Notice(
        title=plain(f"{sweep}: a test"),
        body="This is a test message of nightlab. The nights of this sweep will be told here.",
    )


def plain(text: str) -> str:
    """Without control characters; what chat services take for a link or a call is broken up."""
    told = CONTROL.sub(" ", text).replace("<", "‹").replace(">", "›")
    return CALLS.sub("@\u200b", told)


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
