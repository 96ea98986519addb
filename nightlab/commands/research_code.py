"""`nightlab research diff` and `take`: what a trial changed in the code, shown, and brought to where the code is."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated

import typer

from nightlab.failure import wrong_use
from nightlab.output import note, plural, print_json

from .agent_store import SessionId, known_session
from .options import HomeOption, JsonOption, home_folder

if TYPE_CHECKING:
    from agent.store.store import AgentStore
    from nightlab.code_changes import Change

DIFF_EPILOG = """\b
Examples:
  nightlab research diff s1
  nightlab research diff s1 s1-t7 --stat
  nightlab research diff s1 s1-t7 > better.patch"""
TAKE_EPILOG = """\b
Examples:
  nightlab research take s1
  nightlab research take s1 s1-t7 --branch wider-net
  nightlab research take s1 --patch better.patch"""

_MESSAGE_WIDTH = 72

TrialArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[TRIAL]", help="Trial id, such as s1-t3; the session's winner without.", show_default=False
    ),
]


def diff(
    session_id: SessionId,
    trial_id: TrialArgument = None,
    stat: Annotated[bool, typer.Option("--stat", help="Files and numbers of lines alone.")] = False,
    parent: Annotated[bool, typer.Option("--parent", help="Against the trial that it was made from.")] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a trial changed in the code.

    Against the code as it was when the session began. Piped into a file it is a patch for git apply and patch -p1.
    """
    from nightlab.code_changes import change_data, change_of, print_patch, print_stat, printable

    folder = home_folder(home)
    with known_session(folder, session_id) as store:
        change = change_of(store, folder, session_id, trial_id, is_from_parent=parent)
    if as_json:
        print_json(change_data(change))
    elif stat:
        print(f"{change.trial.trial_id} against {change.against}: {printable(change.state.summary)}")
        print_stat(change)
    else:
        print_patch(change)


def take(
    session_id: SessionId,
    trial_id: TrialArgument = None,
    branch: Annotated[
        str | None,
        typer.Option("--branch", metavar="NAME", help="Name of the new branch.", show_default="nightlab/TRIAL"),
    ] = None,
    patch: Annotated[
        Path | None, typer.Option("--patch", metavar="FILE", help="Write a patch there instead.", show_default=False)
    ] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Bring a trial's code into your repository, as a new branch or as a patch.

    The branch begins where the session began. Your files, the index and other branches stay as they are. Code that was
    in no repository gives a patch.
    """
    from nightlab.code_changes import as_branch, as_patch, change_data, change_of

    if branch is not None and patch is not None:
        raise wrong_use("give --branch or --patch, not both", code="branch_and_patch")
    folder = home_folder(home)
    with known_session(folder, session_id) as store:
        change = change_of(store, folder, session_id, trial_id, is_from_parent=False)
        told = _told(store, change)
    name = change.trial.trial_id
    known = {key: value for key, value in change_data(change).items() if key not in ("patch", "commit", "against")}
    if patch is None and branch is None and change.shop.origin.commit is None:
        patch = Path(f"{name}.patch")
    if patch is not None:
        as_patch(change, patch)
        root = shlex.quote(change.shop.origin.root)
        if as_json:
            print_json({**known, "patch": str(patch.resolve())})
        else:
            print(patch)
            note(f"apply it:  cd {root} && git apply {shlex.quote(str(patch.resolve()))}    (or patch -p1 <)")
        return
    made = as_branch(change, branch or f"nightlab/{name}", told=told, at=int(time.time()))
    if as_json:
        print_json({**known, **made})
        return
    print(made["branch"])
    if made["n_uncommitted"]:
        n_files = plural(made["n_uncommitted"], "file")
        note(f"its first commit is {n_files} that were not committed when {session_id} began, its second the change")
    where, new = shlex.quote(made["repository"]), shlex.quote(made["branch"])
    note(f"look at it:  git -C {where} show {new}\nmerge it:    git -C {where} merge {new}")


def _told(store: AgentStore, change: Change) -> str:
    """What is known of a trial, in the words of a commit."""
    trial, session = change.trial, store.session(change.trial.session_id)
    lines = [f"Trial {trial.trial_id} of {session.task_name}, suggested by {trial.suggested_by}."]
    if trial.value is not None:
        lines.append(f"Measured: {trial.value:.6g} (seed {trial.seed}).")
    result = session.result
    if result is not None and result.best_configuration == trial.configuration:
        lines.append(result.sentence)
    if trial.params:
        lines.append("Parameters: " + ", ".join(f"{key}={value}" for key, value in trial.params.items()))
    return "\n".join(fill(line, _MESSAGE_WIDTH, break_long_words=False, break_on_hyphens=False) for line in lines)
