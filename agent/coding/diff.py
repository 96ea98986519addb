"""What a trial changes in the code, for people who are asked about it and for agents: bounded, untrusted text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from agent.edits import CodeRefused, Workshop, workshop_folder
from agent.llm.untrusted import clean
from agent.steps.code_states import rules_of
from agent.store.views import CodeState
from agent.task import Task
from runtime_client.snapshot.git import GitFailed

MOST_CHARACTERS = 40_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeDiff:
    text: str
    """As a unified diff, without characters that a reader would not see: to be read, not to
    be applied. Nobody has vouched for it."""
    is_cut: bool
    """It is longer than this."""


def diff_of(
    code: CodeState, task: Task, home: Path, session_id: str, *, against: CodeState | None = None
) -> CodeDiff | None:
    """What a state changes against another one (None: the base). None: it is not there any more, or can not be read."""
    if task.code is None:
        return None
    try:
        patch = Workshop.existing(workshop_folder(home, session_id), rules_of(task)).patch(code, against)
    except (CodeRefused, GitFailed, OSError):
        return None
    whole = clean(patch.decode(errors="replace"))
    return CodeDiff(text=whole[:MOST_CHARACTERS], is_cut=len(whole) > MOST_CHARACTERS)
