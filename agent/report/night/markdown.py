"""The same night as Markdown, for mail, chat and terminals. Everything from outside is escaped; nothing is a plot."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from agent.report import wording
from agent.report.tables import web_address
from agent.store.views import Interval

from . import rows, sentence
from .build import MAX_NIGHT_ROWS, night_rows, watch_rows
from .facts import CellPart, NightReport

SPECIAL = re.compile(r"([\\`*_\[\]<>|~&])")
AT_THE_START = re.compile(r"^(\d*)([-+.)#=])(?=\2*(?:\s|$))")
"""What makes a line a list or a heading."""
MAX_ROWS = 40
"""Of a table; the page has them all."""


def build_night_markdown(report: NightReport) -> str:
    """The whole page, in the order in which it is read."""
    parts = [
        *_head(report),
        *_best(report),
        *_watched(report),
        *_failures(report),
        *_ran(report),
        *_capacity(report),
        *_history(report),
    ]
    return "\n".join(parts).rstrip() + "\n"


def escaped(text: object) -> str:
    """One line of text that shows as it is written."""
    flat = SPECIAL.sub(r"\\\1", " ".join(str(text).split()))
    return AT_THE_START.sub(r"\1\\\2", flat)


def _table(columns: Sequence[str], lines: Sequence[Sequence[object]]) -> Iterator[str]:
    """Cells are Markdown already."""
    yield "| " + " | ".join(columns) + " |"
    yield "|" + "|".join(" --- " for _ in columns) + "|"
    for line in lines[:MAX_ROWS]:
        yield "| " + " | ".join(str(cell) for cell in line) + " |"
    if len(lines) > MAX_ROWS:
        yield ""
        yield f"and {len(lines) - MAX_ROWS} more"
    yield ""


def _head(report: NightReport) -> Iterator[str]:
    night = report.night
    yield f"# {escaped(night.night_id)}"
    yield ""
    yield f"**{escaped(sentence.headline(night, report.summary))}**"
    yield ""
    times = [f"{sentence.outcome_words(night)}", f"started {report.moment(night.created_at)}"]
    if night.ended_at is not None:
        times.append(f"ended {report.moment(night.ended_at)}")
    if night.finish_by is not None:
        times.append(f"deadline {report.moment(night.finish_by)}")
    yield escaped(", ".join(times))
    yield ""
    if night.message:
        yield escaped(sentence.shortened(night.message, sentence.MAX_MESSAGE))
        yield ""
    for said in report.notes:
        yield escaped(said)
        yield ""


def _best(report: NightReport) -> Iterator[str]:
    shown = [best for best in report.summary.cells if best.n_trials or best.best is not None]
    if not shown:
        return
    yield "## Best"
    yield ""
    lines = [
        (
            _cut(best.cell),
            _cut(best.metric),
            _interval(best.best),
            _cut(sentence.params_words(best.best_params), 200),
            wording.number(best.default_value),
            escaped(sentence.against_default(best)) if best.best is not None else wording.NONE,
            f"{best.n_measured} of {best.n_trials}",
        )
        for best in shown
    ]
    yield from _table(("cell", "metric", "best", "with", "default", "against the default", "measured"), lines)


def _watched(report: NightReport) -> Iterator[str]:
    found = watch_rows(report)
    if not found:
        return
    yield "## Against the reference night"
    yield ""
    lines = [
        (
            f"**{row.result.change}**" if row.css else row.result.change,
            _cut(row.result.cell),
            _cut(row.what),
            escaped(row.difference),
            row.result.n_pairs,
            _cut(row.result.reason, 200),
        )
        for row in found
    ]
    yield from _table(("change", "cell", "what", "difference", "pairs", "why"), lines)


def _failures(report: NightReport) -> Iterator[str]:
    found = rows.failure_rows(report)
    if not found:
        return
    yield "## Failures"
    yield ""
    for row in found:
        where = "" if len(report.cells) == 1 else f" in {escaped(row.cells)}"
        yield f"- **{escaped(row.reason)}**, {wording.plural(row.count, 'trial')}{where}: {escaped(row.evidence)}"
    yield ""


def _ran(report: NightReport) -> Iterator[str]:
    found, n_more = rows.configuration_rows(report)
    if found:
        yield "## Configurations"
        yield ""
        lines = [
            (
                _cut(row.cell),
                _cut(row.params, 200) + (" (default)" if row.is_default else ""),
                row.standing,
                row.n,
                "" if row.run is None else _link(row.run),
            )
            for row in found
        ]
        yield from _table(("cell", "parameters", "standing", "values", "run"), lines)
        if n_more:
            yield f"and {n_more} more"
            yield ""
    if not report.cells:
        return
    yield "## Sessions"
    yield ""
    for cell in report.cells[:MAX_ROWS]:
        yield f"- {_cut(cell.name)}: {_session(cell)}{_mlflow(cell.mlflow_url)}"
    if len(report.cells) > MAX_ROWS:
        yield f"- and {len(report.cells) - MAX_ROWS} more"
    yield ""


def _capacity(report: NightReport) -> Iterator[str]:
    summary, used = report.summary, rows.capacity_rows(report)
    yield "## Capacity and spend"
    yield ""
    for row in rows.spend_rows(report):
        yield f"- {row.name}: {row.spent} of {row.limit}" if row.limit != "no limit" else f"- {row.name}: {row.spent}"
    given = f"{used.given_back} device-hours given back"
    for_whom = f", for {escaped(', '.join(used.for_whom[:10]))}" if used.for_whom else ""
    yield f"- gave way {wording.plural(used.n_preemptions, 'time')}, {given}{for_whom}"
    yield f"- resumed from the last night: {summary.n_resumed}; left for the next: {summary.n_left}"
    for said in summary.notified:
        yield f"- told: {escaped(said)}"
    yield ""


def _history(report: NightReport) -> Iterator[str]:
    found = night_rows(report)[::-1]
    if len(found) > 1 or report.missed:
        yield "## Nights"
        yield ""
        lines = [(report.day(row.night.created_at), escaped(row.outcome), _cut(row.words, 200)) for row in found]
        yield from _table(("night", "outcome", "what was learned"), lines[:MAX_NIGHT_ROWS])
    for at in report.missed:
        yield f"- missed: {report.moment(at)}, not started"
    yield f"_Written {escaped(report.moment(report.made_at))} by nightlab._"


def _interval(interval: Interval | None) -> str:
    return wording.NONE if interval is None else escaped(f"{wording.estimate(interval)} {sentence.span(interval)}")


def _cut(text: str, width: int = 80) -> str:
    return escaped(sentence.shortened(text, width))


def _session(cell: CellPart) -> str:
    session = cell.session
    return "not started" if session is None else f"session {escaped(session.session_id)}, {session.state}"


def _link(link: rows.Link) -> str:
    return f"[{escaped(link.text)}]({_address(link.url)})" if link.url else escaped(link.text)


def _mlflow(url: str | None) -> str:
    safe = web_address(url)
    return f", [MLflow run]({_address(safe)})" if safe else ""


def _address(url: str) -> str:
    """Nothing in it can end the link."""
    return re.sub(r"[\s()<>\\]", lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), url)
