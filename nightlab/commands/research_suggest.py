"""`nightlab research suggest` and `suggestions`: a person's ideas for a session, checked before they are kept."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nightlab.failure import work_failed, wrong_use
from nightlab.output import ago, note, print_json, print_table

from .agent_store import SessionId, known_session
from .options import HomeOption, JsonOption, home_folder

if TYPE_CHECKING:
    from agent.store.store import AgentStore
    from agent.store.views import ParamValue, SessionView, SuggestedEdit, SuggestionView

SUGGEST_EPILOG = """\b
Examples:
  nightlab research suggest s1 --set lr=3e-4 --why "the loss still falls at the end"
  nightlab research suggest s1 --set lr=3e-4 --set activation=relu --why "as in the paper" --by Ada
  nightlab research suggest s1 --edit wider.patch --on s1-t7 --why 'more capacity'"""


def suggest(
    session_id: SessionId,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="A parameter and its value; may be given again.", metavar="NAME=VALUE"),
    ] = None,
    edit: Annotated[
        Path | None,
        typer.Option(help="A change of the code: blocks or a diff, see docs/code-trials.md.", metavar="FILE"),
    ] = None,
    on: Annotated[str | None, typer.Option(help="Whose code it changes; the base without.", metavar="TRIAL")] = None,
    why: Annotated[str, typer.Option(help="The reason; it is kept with the trial.", metavar="TEXT")] = "",
    by: Annotated[str, typer.Option(help="Whose idea it is.", metavar="NAME")] = "person",
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Suggest a configuration, or an edit of the code, to a session; ideas of people go first.

    What is not set is taken from the best configuration so far; with an edit, from the trial whose code it changes.
    Checked at once: against the search space, and whether the edit fits.
    """
    from agent.planner.suggested import read_suggestion
    from agent.task import Task

    if not why.strip():
        raise wrong_use('--why is missing: say in a few words why it may help (--why "...")', code="no_reason")
    with known_session(home_folder(home), session_id) as store:
        session = store.session(session_id)
        _refuse_if_ended(session)
        task = Task.model_validate_json(session.task_json)
        suggested = _edit(edit, on)
        given = pairs(settings or (), "--set")
        params: dict[str, ParamValue] = {}
        if given or suggested is None:
            read = read_suggestion(given, task)
            if read.problems:
                raise wrong_use("; ".join(read.problems), code="bad_suggestion", path="set")
            params = read.params
        if suggested is not None:
            _refuse_if_it_does_not_fit(store, home_folder(home), session_id, suggested)
        name = by.strip() or "person"
        kept = store.suggest(session_id, params, why=why.strip(), suggested_by=name, edit=suggested)
    if as_json:
        print_json(asdict(kept))
        return
    print(f"suggestion {kept.suggestion_id} for {session_id}: {_shown(kept)}")
    if session.state != "running":
        note(f"{session_id} is {session.state}; it waits for: nightlab research resume {session_id}")


def suggestions(session_id: SessionId, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """List what people suggested to a session, and what became of it."""
    with known_session(home_folder(home), session_id) as store:
        found = store.suggestions(session_id)
    if as_json:
        print_json([asdict(one) for one in found])
        return
    if not found:
        print(f"none yet; suggest one with: nightlab research suggest {session_id} --set NAME=VALUE --why TEXT")
        return
    rows = [
        (one.suggestion_id, one.suggested_by, ago(one.at), _shown(one), one.why, one.trial_id or one.note or "waits")
        for one in found
    ]
    print_table(("#", "by", "suggested", "parameters", "why", "became"), rows)


def _edit(path: Path | None, on: str | None) -> SuggestedEdit | None:
    """
    Raises:
        Failure: it can not be read, or there is a trial and no edit.
    """
    from agent.store.views import SuggestedEdit

    if path is None:
        if on is not None:
            raise wrong_use("--on names the trial whose code an edit changes; give it with --edit FILE", code="no_edit")
        return None
    try:
        text = path.read_bytes().decode()
    except OSError as error:
        raise wrong_use(f"--edit {path} can not be read: {error.strerror}", code="bad_edit", path="edit") from error
    except UnicodeDecodeError as error:
        raise wrong_use(f"--edit {path} is no text in UTF-8", code="bad_edit", path="edit") from error
    return SuggestedEdit(text=text) if on is None else SuggestedEdit(text=text, parent=on)


def _refuse_if_it_does_not_fit(store: AgentStore, folder: Path, session_id: str, edit: SuggestedEdit) -> None:
    from agent.coding.suggested import why_not

    refused = why_not(store, folder, session_id, edit)
    if refused is not None:
        raise wrong_use(refused, code="bad_edit", path="edit")


def _refuse_if_ended(session: SessionView) -> None:
    if session.state == "finished":
        raise work_failed(
            f"{session.session_id} is finished and tries nothing more; put the idea into the space of a task and "
            "start a new session with: nightlab research start TASK.yaml",
            code="session_finished",
        )


def pairs(settings: list[str] | tuple[()], option: str) -> dict[str, str]:
    """Names and values as given with an option.

    Raises:
        Failure: one is not of the form NAME=VALUE, or a name is given twice.
    """
    found: dict[str, str] = {}
    for text in settings:
        name, equals, value = text.partition("=")
        name, value = name.strip(), value.strip()
        if not equals or not name or not value:
            raise wrong_use(
                f"{option} {text!r} is not of the form NAME=VALUE, such as {option} lr=3e-4", code="bad_set"
            )
        if name in found:
            raise wrong_use(f"{option} {name} is given twice: {found[name]!r} and {value!r}", code="bad_set")
        found[name] = value
    return found


def _shown(one: SuggestionView) -> str:
    from nightlab.session_page import shown

    if one.again_of is not None:
        return f"{one.again_of} again"
    edit = [] if one.edit is None else [f"an edit of {one.edit.parent}"]
    return " ".join([*edit, *(f"{name}={shown(value)}" for name, value in one.params.items())])
