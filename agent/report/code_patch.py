"""The patch of a session's best code, read from the session's own repository."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from agent.edits.base import CodeRefused
from agent.edits.rules import EditRules
from agent.edits.workshop import Workshop, workshop_folder
from runtime_client.snapshot.git import GitFailed

from .code_trials import best_code
from .facts import ReportInput


def with_patch(facts: ReportInput, home: Path) -> ReportInput:
    """The facts with what the best code changes. Where it can not be read, the report says why and is written still."""
    state, code = best_code(facts), facts.task.code
    if state is None or code is None:
        return facts
    folder = workshop_folder(home, facts.session.session_id)
    try:
        return replace(facts, patch=Workshop.existing(folder, EditRules(editable=code.editable)).patch(state))
    except (CodeRefused, GitFailed, OSError) as error:
        return replace(facts, patch_problem=str(error))
