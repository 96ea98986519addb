"""`nightlab sweep report` and `history`: one night as a page, and all of them as a table."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nightlab.failure import ExitCode, Failure, work_failed
from nightlab.output import note, print_json, print_table

from .agent_store import agent_store
from .options import HomeOption, JsonOption, home_folder

if TYPE_CHECKING:
    from agent.report.night import NightReport
    from agent.store.night_reading import NightReading
    from agent.store.store import AgentStore
    from agent.sweeps.views import NightView
    from runtime_client.client import RuntimeClient

REPORT_EPILOG = "Example:  nightlab sweep report digits-nightly --open"
HISTORY_EPILOG = "Example:  nightlab sweep history digits-nightly"
MAX_WORDS = 90
DEFAULT_NIGHTS = 30

NightName = Annotated[
    str,
    typer.Argument(metavar="NAME", help="Sweep (its newest night), or a night such as digits-n3.", show_default=False),
]


def report(
    name: NightName,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write it there.", metavar="PATH")] = None,
    open_it: Annotated[bool, typer.Option("--open", help="Show it in the browser.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Markdown instead of HTML.")] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the morning report of a night anew, as things stand; print where it is.

    Also without the runtime: then jobs and links into MLflow are left out, and the page says so.
    """
    from agent.report.night import headline

    folder = home_folder(home)
    with known_night(folder, name) as (nights, store, night):
        facts = _facts(folder, nights, store, night.night_id)
        path = _write(facts, nights, folder, output, markdown)
    for said in facts.notes:
        note(said)
    if as_json:
        sentence = headline(facts.night, facts.summary)
        print_json({"night_id": night.night_id, "path": str(path), "sentence": sentence, "notes": list(facts.notes)})
    else:
        print(path)
    if open_it:
        typer.launch(path.as_uri())


def history(
    name: NightName,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Nights at most, the newest.")] = DEFAULT_NIGHTS,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the nights of a sweep, newest first: how they ended and what they came to."""
    from agent.report.night.plain import night_row_data
    from agent.report.night.sentence import headline, shortened
    from agent.sweeps.views import NightSummary
    from nightlab.moments import moment

    with known_night(home_folder(home), name) as (nights, _, night):
        found = nights.nights(night.sweep)[::-1]
    if as_json:
        print_json([night_row_data(one) for one in found[:limit]])
        return
    rows = [
        (
            one.night_id,
            one.outcome.value if one.outcome else one.state.value,
            moment(one.created_at),
            "yes" if one.is_reference else "",
            shortened(headline(one, one.summary or NightSummary()), MAX_WORDS),
        )
        for one in found[:limit]
    ]
    print_table(("night", "outcome", "started", "accepted", "what was learned"), rows, state_column=1)
    if len(found) > limit:
        note(f"{len(found) - limit} older ones: --limit {len(found)}")


@contextmanager
def known_night(folder: Path, name: str) -> Iterator[tuple[NightReading, AgentStore, NightView]]:
    """The night of that id, or the newest one of the sweep.

    Raises:
        Failure: there is neither.
    """
    from agent.store.night_reading import NightNotFound, NightReading

    with agent_store(folder) as store:
        nights = NightReading(store)
        try:
            night = nights.named(name)
        except NightNotFound as error:
            raise Failure(str(error), exit_code=ExitCode.WRONG_USE, code="unknown_night", kind="not_found") from error
        yield nights, store, night


def _facts(folder: Path, nights: NightReading, store: AgentStore, night_id: str) -> NightReport:
    from agent.sweeps.morning import MorningDeps, night_report
    from runtime_client.client import RuntimeClient

    opened: list[RuntimeClient] = []

    def connect() -> RuntimeClient:
        opened.append(RuntimeClient.from_home(folder, timeout_s=10.0))
        return opened[-1]

    deps = MorningDeps(home=folder, nights=nights, store=store, connect=connect, clock=time.time)
    try:
        return night_report(deps, night_id)
    finally:
        for client in opened:
            client.close()


def _write(facts: NightReport, nights: NightReading, folder: Path, output: Path | None, markdown: bool) -> Path:
    """The report's own two files, or the one that was asked for."""
    from agent.report.night import build_night_html, build_night_markdown, write_night
    from agent.report.night.write import replace_text
    from agent.sweeps.morning import reports_folder

    try:
        if output is None:
            files = write_night(facts, reports_folder(folder))
            nights.save_reports(facts.night.night_id, str(files.html), str(files.markdown))
            return files.markdown if markdown else files.html
        path = output.expanduser().resolve()
        replace_text(path, build_night_markdown(facts) if markdown else build_night_html(facts))
    except OSError as error:
        where = error.filename or output or folder
        raise work_failed(f"the report can not be written: {where}: {error.strerror}", code="not_written") from error
    return path
