"""Code states: the folder that a trial's code is in while its job is submitted, and the end of those folders.

A job runs from a snapshot, so a folder is needed until that was taken. The base's stays: scorers run from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from agent.deps import Deps
from agent.edits.rules import EditRules
from agent.private_files import private_in_code
from agent.store.views import TrialView
from agent.task import Task


def rules_of(task: Task) -> EditRules:
    """What an edit may touch."""
    assert task.code is not None
    return EditRules(
        editable=task.code.editable, private=private_in_code(task), max_changed_lines=task.code.max_changed_lines
    )


def code_root(trial: TrialView, deps: Deps) -> Path | None:
    """The folder with the code of a trial, made clean; None: that of the task."""
    if deps.workshop is None:
        return None
    return deps.workshop.checkout(trial.facts.edited or deps.workshop.base)


def tidy_up(submitted: Iterable[TrialView], deps: Deps) -> None:
    """Remove the folders of edited code that no job waits to be submitted with."""
    if deps.workshop is None or all(trial.facts.edited is None for trial in submitted):
        return
    history = deps.book.history()
    waiting = [trial for trial in history.trials if trial.is_submitting]
    trees = {deps.workshop.base.tree, *(t.facts.edited.tree for t in waiting if t.facts.edited is not None)}
    deps.workshop.keep_only(trees)
