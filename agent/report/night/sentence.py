"""What a night came to, in words: the sentence that the page, the message and the command line begin with. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import shorten

from agent.report import wording
from agent.store.views import Interval, ParamValue
from agent.sweeps.views import CellBest, Change, NightOutcome, NightState, NightSummary, NightView, WatchResult

from .facts import regressions

AGAINST_DEFAULT = {
    "better": "better than the default",
    "worse": "worse than the default",
    "indistinguishable": "not told apart from the default",
    "invalid": "not comparable with the default",
}
NOT_CONFIRMED = "not confirmed against the default"
OUTCOMES = {
    NightOutcome.DONE: "ran to its end",
    NightOutcome.DEADLINE: "ended by its deadline",
    NightOutcome.BUDGET: "ended by its budget",
    NightOutcome.STOPPED: "stopped by a person",
    NightOutcome.REPLACED: "ended by the next night",
    NightOutcome.SKIPPED: "skipped",
    NightOutcome.FAILED: "failed",
}
MEASURES = {"speed": "run time", "memory": "memory"}
MAX_CELL = 60
MAX_MESSAGE = 300


def headline(night: NightView, summary: NightSummary) -> str:
    """One sentence: regressions first, then the best."""
    if night.outcome is NightOutcome.SKIPPED:
        return _sentence(f"Not run: {_reason(night, 'skipped')}")
    parts = [part for part in (_worse(summary), _failed(night, summary), _best(summary), _calm(summary)) if part]
    if parts:
        return _sentence("; ".join(parts))
    if night.state is not NightState.ENDED:
        return "It still runs; what it comes to is told at its end."
    if not summary.cells:
        return _sentence(_reason(night, f"it {outcome_words(night)}, and what it came to is not known"))
    return _sentence(_reason(night, "not one trial gave a value"))


def outcome_words(night: NightView) -> str:
    return "still runs" if night.outcome is None else OUTCOMES[night.outcome]


def against_default(best: CellBest) -> str:
    return NOT_CONFIRMED if best.comparison is None else AGAINST_DEFAULT.get(best.comparison, best.comparison)


def what_words(result: WatchResult, summary: NightSummary) -> str:
    """The metric's own name, or what is watched."""
    if result.what != "metric":
        return MEASURES.get(result.what, result.what)
    return next((best.metric for best in summary.cells if best.cell == result.cell), "metric")


def difference(result: WatchResult) -> str:
    """`-0.012 [-0.018, -0.006]`, or in percent of the reference for speed and memory."""
    interval = result.interval
    if interval is None:
        return wording.NONE
    if result.what == "metric":
        return f"{wording.estimate(interval, signed=True)} {wording.bounds(interval, signed=True)}"
    part = Interval(
        estimate=100 * interval.estimate,
        low=100 * interval.low,
        high=100 * interval.high,
        confidence=interval.confidence,
        n=interval.n,
    )
    return f"{wording.estimate(part, signed=True)} % {wording.bounds(part, signed=True)}"


def params_words(params: Mapping[str, ParamValue] | None, *, width: int = 90) -> str:
    if params is None:
        return wording.NONE
    said = ", ".join(f"{name}={wording.parameter(value)}" for name, value in params.items())
    return shortened(said, width)


def shortened(text: str, width: int) -> str:
    """On one line; a long word is cut."""
    flat = " ".join(text.split())
    if len(flat) <= width:
        return flat
    cut = shorten(flat, width, placeholder=" …")
    return cut if len(cut) > width // 2 else flat[: width - 1] + "…"


def _worse(summary: NightSummary) -> str | None:
    found = regressions(summary)
    if not found:
        return None
    first = found[0]
    where = "" if len(summary.cells) == 1 else f" in {shortened(first.cell, MAX_CELL)}"
    what = f"{shortened(what_words(first, summary), MAX_CELL)}{where} is worse by {difference(first)}"
    return f"regression: {what}" if len(found) == 1 else f"{len(found)} regressions, first of all {what}"


def _failed(night: NightView, summary: NightSummary) -> str | None:
    if night.outcome is NightOutcome.FAILED:
        return _reason(night, "not one trial gave a value")
    empty = [best for best in summary.cells if best.n_trials and not best.n_measured]
    if empty and night.state is NightState.ENDED:
        return f"no trial gave a value in {len(empty)} of {wording.plural(len(summary.cells), 'cell')}"
    return None


def _best(summary: NightSummary) -> str | None:
    measured = [best for best in summary.cells if best.best is not None]
    if not measured:
        return None
    if len(measured) == 1:
        return f"{best_value(measured[0])}, {against_default(measured[0])}"
    beaten = sum(best.comparison == "better" for best in measured)
    return f"the default is beaten in {beaten} of {wording.plural(len(measured), 'cell')}"


def best_value(best: CellBest) -> str:
    """`best val_accuracy 0.981 [0.979, 0.984]`."""
    return f"best {shortened(best.metric, MAX_CELL)} {wording.estimate(best.best)} {span(best.best)}"


def span(interval: Interval | None) -> str:
    """`[0.979, 0.984]`; one value has no interval, and `[0.98, 0.98]` would claim that nothing varies."""
    if interval is not None and interval.n < 2 and interval.low == interval.high:
        return "(one value)"
    return wording.bounds(interval)


def best_words(best: CellBest) -> str:
    """The same `with lr=0.01`."""
    return best_value(best) + (f" with {params_words(best.best_params)}" if best.best_params else "")


def _calm(summary: NightSummary) -> str | None:
    """Only where nothing got worse: what can be said of that."""
    changes = {result.change for result in summary.watched}
    if Change.WORSE in changes or not changes:
        return None
    if changes == {Change.UNKNOWN}:
        return "nothing to hold it against yet"
    n_better = sum(result.change is Change.BETTER for result in summary.watched)
    return f"no regression, {n_better} better than before" if n_better else "no regression"


def _reason(night: NightView, otherwise: str) -> str:
    return shortened(night.message, MAX_MESSAGE).rstrip(".") or otherwise


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith(("…", ".")) else ".")
