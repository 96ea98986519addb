"""Edits that people and outside agents suggest: told at once whether they fit, made into code by the session."""

from __future__ import annotations

from pathlib import Path

from agent.coding.editor import Editor
from agent.coding.parents import Parent, named
from agent.edits import CodeRefused, NotApplied, Workshop, workshop_folder
from agent.planner.configuration import canonical, space_problems
from agent.planner.history import History
from agent.planner.proposers.person import Prepared
from agent.steps.code_states import rules_of
from agent.store.store import AgentStore
from agent.store.views import SuggestedEdit, SuggestionView
from agent.task import Task
from agent.thinking.checking import said
from runtime_client.snapshot.git import GitFailed

MAX_EDIT = 200_000
"""Characters of an edit from outside."""
_SUMMARY = 100


class SuggestedEdits:
    """Implements `PrepareEdit`. What was made once is remembered; a new process makes the same again."""

    def __init__(self, task: Task, editor: Editor, *, session_id: str) -> None:
        self._task = task
        self._editor = editor
        self._session_id = session_id
        self._made: dict[int, Prepared] = {}

    def __call__(self, idea: SuggestionView, history: History) -> Prepared:
        if idea.suggestion_id not in self._made:
            self._made[idea.suggestion_id] = self._prepared(idea, history)
        return self._made[idea.suggestion_id]

    def _prepared(self, idea: SuggestionView, history: History) -> Prepared:
        assert idea.edit is not None
        parent = named(idea.edit.parent, self._task, history)
        if isinstance(parent, str):
            return Prepared(note=parent)
        params = {**parent.params, **idea.params}
        if not space_problems(params, self._task):
            params = canonical(params, self._task)
        summary = said(idea.why, _SUMMARY)
        try:
            code = self._editor.made(idea.edit.text, parent, session_id=self._session_id, summary=summary)
        except NotApplied as error:
            return Prepared(note=" ".join(str(error).splitlines()))
        return Prepared(params=params, code=code)


def why_not(store: AgentStore, home: Path, session_id: str, edit: SuggestedEdit) -> str | None:
    """Why an edit can not be tried, as far as can be told without writing anything; None: nothing is against it.

    Before the session has begun there is no code to try it on, and it tells itself.

    Raises:
        SessionNotFound: as `AgentStore.session`.
    """
    task = Task.model_validate_json(store.session(session_id).task_json)
    if task.code is None:
        return (
            "this session changes no code: its task names no files that may be edited; a new session may, with "
            "code: {editable: [FILE, ...]}"
        )
    if len(edit.text) > MAX_EDIT:
        return f"the edit has {len(edit.text):,} characters; {MAX_EDIT:,} are the most. Write changed lines alone"
    parent = named(edit.parent, task, History.of(store.trials(session_id)))
    if isinstance(parent, str):
        return parent
    editor = existing_editor(task, home, session_id)
    return None if editor is None else _does_not_fit(edit, parent, editor)


def existing_editor(task: Task, home: Path, session_id: str) -> Editor | None:
    """To read a session's code, from any process; None: the session has not begun, or changes no code."""
    if task.code is None:
        return None
    rules = rules_of(task)
    try:
        return Editor(task, Workshop.existing(workshop_folder(home, session_id), rules), rules)
    except CodeRefused:
        return None


def _does_not_fit(edit: SuggestedEdit, parent: Parent, editor: Editor) -> str | None:
    try:
        editor.changed(edit.text, parent.code)
    except NotApplied as error:
        return str(error)
    except (GitFailed, OSError) as error:
        return f"the session's code can not be read now: {error}; try again"
    return None
