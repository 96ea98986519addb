"""`Editor`: an edit as text becomes a state of the code, or a sentence that says why not. The shell of the workshop.

May be used by several threads.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
from collections.abc import Mapping

from agent.coding.parents import Parent
from agent.edits import EditRules, NotApplied, Workshop, apply, installed_modules, objections
from agent.store.views import CodeState
from agent.task import Task

_SUMMARY = 100
"""Characters of the line that says what an edit is."""


class Editor:
    def __init__(self, task: Task, workshop: Workshop, rules: EditRules) -> None:
        self._task = task
        self._workshop = workshop
        self._rules = rules

    def sources(self, code: CodeState | None) -> dict[str, bytes]:
        """The editable files at a state; None: the base."""
        return self._workshop.sources(code or self._workshop.base)

    def changed(self, text: str, code: CodeState | None) -> dict[str, bytes]:
        """The files that an edit changes, applied and looked at; nothing is written.

        Raises:
            NotApplied: it does not fit, or should not be run; a sentence a line.
        """
        sources = self.sources(code)
        changed = apply(text, sources, self._rules)
        python = _python_of(self._task)
        found = objections(
            changed,
            sources,
            self._rules,
            base=self.sources(None),
            paths=self._workshop.paths(code or self._workshop.base),
            installed=None if python is None else installed_modules(python),
            python=python,
        )
        if found:
            raise NotApplied("\n".join(found))
        return changed

    def made(self, text: str, parent: Parent, *, session_id: str, summary: str) -> CodeState | None:
        """The parent's code after an edit, as a commit; the same again gives the same one. None: it is the base again.

        Raises:
            NotApplied: as `changed`.
        """
        base = self._workshop.base
        code = parent.code or base
        changed = self.changed(text, parent.code)
        state = self._workshop.commit(
            code,
            changed,
            trial=f"{session_id}-e{_digest(code, changed)}",
            message=summary[:_SUMMARY],
            parent_trial=parent.trial_id,
        )
        return None if state.tree == base.tree else state


def _digest(code: CodeState, changed: Mapping[str, bytes]) -> str:
    """Names the branch of an edit, whose trial has no number yet: equal for the same edit of the same code."""
    digest = hashlib.sha256(code.tree.encode())
    for path in sorted(changed):
        digest.update(hashlib.sha256(path.encode(errors="surrogateescape")).digest())
        digest.update(hashlib.sha256(changed[path]).digest())
    return digest.hexdigest()[:10]


def _python_of(task: Task) -> str | None:
    """The Python that jobs start, where their command names one; None: it is not known."""
    command = task.job.command
    try:
        words = shlex.split(command) if isinstance(command, str) else list(command)
    except ValueError:
        return None
    if not words or not os.path.basename(words[0]).startswith("python"):
        return None
    return shutil.which(words[0], path=task.job.env_variables.get("PATH"))
