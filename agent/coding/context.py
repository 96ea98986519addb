"""What a model is shown when it is asked for an edit: files of the code first, then as many rows as fit. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import prompts
from agent.coding.parents import Parent
from agent.coding.showing import Shown, shown
from agent.llm.counting import tokens_of
from agent.llm.untrusted import fenced
from agent.thinking import tables
from agent.thinking.context import ROWS, Situation, objective_text, space_text
from agent.thinking.tables import Table
from agent.thinking.tables.trials import params_text
from prompts import Fenced, Rendered

PROMPT = "edit"
"""Its name, and the purpose of the calls in the accounts."""
_NOTES_CHARACTERS = 10_000
_BRIEF_CHARACTERS = 3_000
_DESCRIPTION_CHARACTERS = 600
_OF_THE_LIMIT = 0.2
"""Of the limit at most so much goes to brief and description each; estimated with three characters a token."""
_NOTES = "edits, failures, refusals"


def edit_prompt(
    situation: Situation, parent: Parent, sources: Mapping[str, bytes], *, limit: int, turn: int
) -> Rendered | None:
    """The prompt within `limit` tokens; None: what it is about does not fit.

    All of the code goes before many rows: rows are left out first, then lines of the code.
    """
    shortened: Rendered | None = None
    for rows in ROWS:
        frame = _rendered(situation, parent, None, rows, limit)
        room = limit - tokens_of(frame.system) - tokens_of(frame.user)
        files = shown(sources, limit=room, turn=turn)
        if files is None:
            continue
        rendered = _rendered(situation, parent, files, rows, limit)
        if files.is_whole:
            return rendered
        shortened = rendered
    return shortened


def _rendered(situation: Situation, parent: Parent, files: Shown | None, rows: int, limit: int) -> Rendered:
    task = situation.task
    assert task.code is not None
    share = int(limit * _OF_THE_LIMIT * 3)
    return prompts.load(PROMPT).render(
        objective=objective_text(task),
        parent=_words(parent, situation),
        space=space_text(task) if task.space else "",
        parameters=params_text(parent.params, task) if task.space else "",
        lines=task.code.max_changed_lines,
        is_whole=files is not None and files.is_whole,
        description=_fenced(task.description, "description of the task", min(_DESCRIPTION_CHARACTERS, share)),
        brief=_fenced(task.brief or "", "the researcher's brief", min(_BRIEF_CHARACTERS, share)),
        budgets=_joined([tables.capacity(task, situation.history, situation.spend)]),
        files=Fenced("") if files is None else files.text,
        notes=_fenced(_joined(_notes(situation, rows)), _NOTES, _NOTES_CHARACTERS),
    )


def _notes(situation: Situation, rows: int) -> list[Table]:
    task, history = situation.task, situation.history
    return [
        tables.edits(task, history, rows),
        tables.failures(task, history, max(rows // 2, 1)),
        tables.refusals(situation.refusals),
    ]


def _words(parent: Parent, situation: Situation) -> str:
    metric = situation.task.objective.metric
    value = "not measured yet" if parent.value is None else f"{metric} {parent.value:.5g}"
    lines = "" if parent.code is None else f", {parent.code.n_changed} lines differ from the base"
    return f"{parent.name} ({value}{lines})"


def _joined(known: list[Table]) -> str:
    return "\n\n".join(f"{one.name}:\n{one.text}" for one in known if one.rows)


def _fenced(text: str, label: str, limit: int) -> str:
    return fenced(text, label=label, limit=limit) if text else ""
