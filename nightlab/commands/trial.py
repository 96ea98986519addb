"""`nightlab trial ...`: trials of all sessions, found, shown, compared, run again, exported."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from nightlab.output import note, plural, print_json

from .agent_store import SessionId, TrialId, agent_store, known_session, known_trials
from .options import HomeOption, JsonOption, home_folder
from .trial_again import REPRODUCE_EPILOG, export, reproduce

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agent.planner.trial_search import Found
    from agent.store.store import AgentStore
    from nightlab.trials.record import TrialRecord

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    help="Trials of all sessions: search, list, show, compare, reproduce, export.",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example:  nightlab trial search warmup",
)

app.command("reproduce", epilog=REPRODUCE_EPILOG)(reproduce)
app.command("export", epilog="Example:  nightlab trial export s1-t7 -o evidence")(export)

LimitOption = Annotated[int, typer.Option(min=1, help="The newest N.", metavar="N")]


@app.command("search", epilog="Example:  nightlab trial search warmup relu")
def search_trials(
    words: Annotated[list[str], typer.Argument(metavar="WORD...", help="All must occur.", show_default=False)],
    limit: LimitOption = 50,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find trials by words, over all sessions, losers included; newest first.

    Looks at parameters (lr=0.001), reasons, notes, people's suggestions, hypotheses, task names and exit reasons.
    """
    from agent.planner.trial_search import search
    from nightlab.trials.record import shelves

    with agent_store(home_folder(home)) as store:
        found = search(shelves(store), " ".join(words))
    _show(found, limit, as_json, none="no trial has all of these words")


@app.command("list", epilog="Example:  nightlab trial list s1")
def list_trials(
    session_id: SessionId, limit: LimitOption = 1000, home: HomeOption = None, as_json: JsonOption = False
) -> None:
    """List the trials of a session, newest first."""
    from agent.planner.trial_search import search
    from nightlab.trials.record import shelf_of

    with known_session(home_folder(home), session_id) as store:
        found = search([shelf_of(store, session_id)], "")
    _show(found, limit, as_json, none=f"{session_id} has no trials yet")


def _show(found: list[Found], limit: int, as_json: bool, *, none: str) -> None:
    from nightlab.trials.page import found_data, print_found

    if as_json:
        print_json([found_data(one) for one in found[:limit]])
        return
    if not found:
        print(none)
        return
    print_found(found[:limit])
    if len(found) > limit:
        note(f"{plural(len(found) - limit, 'older trial')} not shown; see them with --limit")


@app.command("show", epilog="Example:  nightlab trial show s1-t3")
def show(trial_id: TrialId, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Show one trial: parameters, value, under which circumstances it was measured, its job, why it was made."""
    from nightlab.trials.page import print_record, record_data
    from nightlab.trials.record import shelf_of

    with _records(home_folder(home), trial_id) as (store, (record,)):
        shelf = shelf_of(store, record.trial.session_id)
        if as_json:
            print_json(record_data(record, shelf))
        else:
            print_record(record, shelf)


@app.command("compare", epilog="Example:  nightlab trial compare s1-t1 s1-t7")
def compare(
    first: Annotated[str, typer.Argument(metavar="A", help="Trial id.", show_default=False)],
    second: Annotated[str, typer.Argument(metavar="B", help="Trial id.", show_default=False)],
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Hold two trials against each other: what differs, and which configuration is better.

    The comparison is made over the replicates of both configurations on common seeds, never over the values of the
    search. It is a look of its own, outside of the error budget of the session.
    """
    from nightlab.trials.comparing import comparison_data, print_comparison, side_by_side

    folder = home_folder(home)
    with _records(folder, first, second) as (_, (one, other)):
        sides = side_by_side(one, other, folder)
    if as_json:
        print_json(comparison_data(sides))
    else:
        print_comparison(sides)


@contextmanager
def _records(folder: Path, *trial_ids: str) -> Iterator[tuple[AgentStore, list[TrialRecord]]]:
    """With what the runtime knows of them, where it is up."""
    from nightlab.trials.record import connected, read_record

    with known_trials(folder, *trial_ids) as store, ExitStack() as stack:
        client = connected(folder)
        if client is not None:
            stack.enter_context(client)
        yield store, [read_record(store, folder, trial_id, client) for trial_id in trial_ids]
