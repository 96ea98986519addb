"""What outside agents may read of a session's code. It changes nothing; all of it is fenced."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agent.coding.diff import diff_of
from agent.coding.parents import named
from agent.coding.suggested import existing_editor
from agent.llm.untrusted import fenced
from agent.planner.history import History
from agent.store.store import AgentStore
from agent.task import Task

MAX_CODE = 120_000
"""Characters of all editable files together; of longer ones the middle is cut out."""
MAX_DIFF = 20_000
"""Characters of what a trial changed."""


def read(store: AgentStore, home: Path, session_id: str, trial: str) -> dict[str, Any]:
    """The editable files at a trial's code, and what it changed; fenced, for nobody has vouched for them.

    Raises:
        SessionNotFound: there is none of this id.
        ValueError: there is no such trial, or no code to be seen.
    """
    task = Task.model_validate_json(store.session(session_id).task_json)
    history = History.of(store.trials(session_id))
    editor = existing_editor(task, home, session_id)
    if editor is None:
        raise ValueError(f"there is no code to be seen of {session_id}: its task edits none, or it has not begun")
    parent = named(trial, task, history)
    if isinstance(parent, str):
        raise ValueError(parent)
    changed = None if parent.code is None else diff_of(parent.code, task, home, session_id)
    sources = editor.sources(parent.code)
    room = max(MAX_CODE // max(len(sources), 1), 1)
    return {
        "trial": parent.name,
        "value": parent.value,
        "params": parent.params,
        "files": {
            path: fenced(content.decode(errors="replace"), label=f"file {path}", limit=room)
            for path, content in sorted(sources.items())
        },
        "changed": None if changed is None else fenced(changed.text, label=f"change of {trial}", limit=MAX_DIFF),
    }
