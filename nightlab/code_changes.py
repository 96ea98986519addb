"""The code changes of a session as commands show them: which trial is meant, what it changes, how that is taken."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.edits.base import CodeRefused
from agent.edits.repository import FileDifference
from agent.edits.rules import EditRules
from agent.edits.taking import NotTaken, take
from agent.edits.workshop import Workshop, workshop_folder
from agent.store.views import CodeState, TrialView
from agent.task import Task
from nightlab.failure import Failure, work_failed, wrong_use
from nightlab.output import plural
from runtime_client.snapshot.git import GitFailed

if TYPE_CHECKING:
    from agent.store.store import AgentStore

_N_NAMED = 8
_WIDEST_BAR = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a trial changes, against the base or another trial."""

    trial: TrialView
    state: CodeState
    against: str
    """`base`, or a trial id."""
    files: tuple[FileDifference, ...]
    patch: bytes
    shop: Workshop


def change_of(store: AgentStore, home: Path, session_id: str, trial_id: str | None, *, is_from_parent: bool) -> Change:
    """The change of a trial; without one named, of the session's winner.

    Raises:
        Failure: the trial changes no code, or the session has no winner that does; its repository is gone.
    """
    task = Task.model_validate_json(store.session(session_id).task_json)
    if task.code is None:
        raise wrong_use(f"{session_id} edits no code: its task has no `code`", code="no_code_trials")
    trial = _winner(store, session_id) if trial_id is None else _named(store, session_id, trial_id)
    state = trial.facts.edited
    if state is None:
        raise wrong_use(f"{trial.trial_id} ran the code as it was{_which_edit(store, session_id)}", code="no_edit")
    before = store.trial(state.parent).facts.edited if is_from_parent and state.parent is not None else None
    try:
        shop = Workshop.existing(workshop_folder(home, session_id), EditRules(editable=task.code.editable))
        return Change(
            trial=trial,
            state=state,
            against="base" if before is None or state.parent is None else state.parent,
            files=tuple(shop.differences(state, before)),
            patch=shop.patch(state, before),
            shop=shop,
        )
    except (CodeRefused, GitFailed) as error:
        raise work_failed(str(error), code="no_workshop") from error


def _named(store: AgentStore, session_id: str, trial_id: str) -> TrialView:
    found = next((one for one in store.trials(session_id) if one.trial_id == trial_id), None)
    if found is None:
        raise wrong_use(f"{session_id} has no trial {trial_id}{_which_edit(store, session_id)}", code="unknown_trial")
    return found


def _winner(store: AgentStore, session_id: str) -> TrialView:
    result = store.session(session_id).result
    if result is None:
        which = _which_edit(store, session_id)
        raise wrong_use(f"{session_id} has no result yet; name a trial{which}", code="no_result")
    trials = store.trials(session_id)
    found = next((one for one in trials if one.configuration == result.best_configuration and one.facts.edited), None)
    if found is None:
        which = _which_edit(store, session_id)
        raise wrong_use(f"the best of {session_id} is the code as it was; name a trial{which}", code="no_edit")
    return found


def _which_edit(store: AgentStore, session_id: str) -> str:
    """The end of a sentence: the trials that have edited code, each edit once."""
    first: dict[str, str] = {}
    for trial in store.trials(session_id):
        if trial.facts.edited is not None:
            first.setdefault(trial.facts.edited.tree, trial.trial_id)
    named = list(first.values())
    if not named:
        return "; none of its trials has edited code"
    more = "" if len(named) <= _N_NAMED else f" and {len(named) - _N_NAMED} more"
    return f"; edited code: {', '.join(named[-_N_NAMED:])}{more}"


def change_data(change: Change) -> dict[str, Any]:
    state = change.state
    return {
        "session_id": change.trial.session_id,
        "trial_id": change.trial.trial_id,
        "against": change.against,
        "summary": state.summary,
        "tree": state.tree,
        "commit": state.commit,
        "parent": state.parent,
        "files": [{"path": one.path, "added": one.added, "removed": one.removed} for one in change.files],
        "patch": change.patch.decode(errors="replace"),
    }


def print_patch(change: Change) -> None:
    """Byte for byte where it goes to a file or a pipe; on a terminal without what would steer that."""
    if not sys.stdout.isatty():
        sys.stdout.flush()
        sys.stdout.buffer.write(change.patch)
        sys.stdout.buffer.flush()
        return
    print(printable(change.patch.decode(errors="replace")), end="")


def printable(text: str) -> str:
    return "".join(c if c.isprintable() or c in "\n\t" else "?" for c in text.replace("\r\n", "\n"))


def print_stat(change: Change) -> None:
    width = max((len(printable(one.path)) for one in change.files), default=0)
    most = max((one.added + one.removed for one in change.files), default=0)
    for one in change.files:
        scale = min(1.0, _WIDEST_BAR / most) if most else 0.0
        bar = "+" * _shown(one.added, scale) + "-" * _shown(one.removed, scale)
        print(f" {printable(one.path):{width}} | {one.added + one.removed:4} {bar}")
    added, removed = sum(one.added for one in change.files), sum(one.removed for one in change.files)
    print(f" {plural(len(change.files), 'file')}, {plural(added, 'line')} added, {removed} removed")


def _shown(n_lines: int, scale: float) -> int:
    return max(1, round(n_lines * scale)) if n_lines else 0


def as_patch(change: Change, path: Path) -> None:
    """Raises Failure: the file is there already, or can not be written."""
    try:
        with path.open("xb") as file:
            file.write(change.patch)
    except FileExistsError as error:
        raise wrong_use(f"{path} is there already; give another name: --patch FILE", code="file_exists") from error
    except OSError as error:
        raise work_failed(f"{path} can not be written: {error.strerror}", code="not_written") from error


def as_branch(change: Change, branch: str, *, told: str, at: int) -> dict[str, Any]:
    """
    Args:
        told: what is known of the trial, for the commit's message.

    Raises:
        Failure: the branch can not be made.
    """
    session_id, trial_id = change.trial.session_id, change.trial.trial_id
    try:
        message = f"{change.state.summary or trial_id}\n\n{told}\n"
        before = f"Uncommitted when {session_id} began\n\nThe change of trial {trial_id} was measured on top.\n"
        taken = take(change.shop, change.state, branch, message=message, before=before, at=at)
    except (NotTaken, GitFailed) as error:
        failure: Failure = work_failed(str(error), code="not_taken")
        raise failure from error
    return {
        "branch": taken.branch,
        "commit": taken.commit,
        "start": taken.start,
        "repository": change.shop.origin.root,
        "n_uncommitted": taken.n_uncommitted,
    }
