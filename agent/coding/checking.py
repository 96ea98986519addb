"""From an answer to a proposal: what was meant, applied to the code, or sentences that say why it can not be tried.

An answer has no words for anything but a parent, an edit of editable files, parameters of the space and a prediction.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from agent.coding.answer import Edit
from agent.coding.editor import Editor
from agent.coding.parents import Parent, named
from agent.edits import NotApplied
from agent.planner.configuration import configuration_id
from agent.planner.forbidden import forbidden
from agent.planner.history import Proposal
from agent.planner.repetition import Tried, repeat_in_words
from agent.store.views import CodeState, ParamValue, Purpose
from agent.thinking.checking import WHY_CHARACTERS, Inquiry, expectation, quoted, read_params, said

_NOTHING = (
    "there is neither an edit nor another parameter in the answer; write the edit as blocks: <<<< edit PATH, old lines "
    "as they are, ==== with, new lines, >>>> end"
)
_NEEDS_TRIAL = "without an edit, parameters are changed on the edited code of a trial; name such a trial as parent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What becomes of an answer: a proposal, or objections to be put right."""

    proposal: Proposal | None = None
    objections: tuple[str, ...] = ()
    asides: tuple[str, ...] = ()
    """What was not taken beside the edit; it costs nothing else."""


def made_of(answer: Edit, shown: Parent, inquiry: Inquiry, editor: Editor, *, session_id: str) -> Made:
    """
    Args:
        shown: whose code the model was shown; meant where it names none.
    """
    task, history = inquiry.task, inquiry.history
    parent = named(answer.parent, task, history) if answer.parent.strip() not in ("", shown.name) else shown
    if isinstance(parent, str):
        return Made(objections=(parent,))
    params, problems = _params(answer, parent, inquiry)
    if problems:
        return Made(objections=tuple(problems))
    try:
        code = _code(answer, parent, editor, session_id=session_id, is_new_point=params != parent.params)
    except NotApplied as error:
        return Made(objections=tuple(line for line in str(error).splitlines() if line.strip()))
    repeat = _repeat(params, code, inquiry)
    if repeat is not None:
        return Made(objections=(f"it repeats what is there: {repeat}",))
    expected, wrong = expectation(answer.gain, answer.chance)
    asides = [f"{quoted(name)} is not yours to set" for name in answer.superfluous] + ([wrong] if wrong else [])
    proposal = Proposal(
        params=params,
        configuration=configuration_id(params, code),
        seed=task.seeds.search,
        purpose=Purpose.SEARCH,
        suggested_by=inquiry.name,
        why=said(answer.why, WHY_CHARACTERS) or "it gave no reason",
        facts=replace(inquiry.origin, expected=expected, edited=code),
    )
    return Made(proposal=proposal, asides=tuple(asides))


def _params(answer: Edit, parent: Parent, inquiry: Inquiry) -> tuple[dict[str, ParamValue], list[str]]:
    params, problems = dict(parent.params), list[str]()
    if answer.parameters:
        params, problems = read_params(answer.parameters, parent.params, inquiry.task)
    condition = None if problems else forbidden(params, inquiry.task)
    return params, problems if condition is None else [f"forbidden: {condition}; change such parameters"]


def _code(answer: Edit, parent: Parent, editor: Editor, *, session_id: str, is_new_point: bool) -> CodeState | None:
    """
    Raises:
        NotApplied: there is nothing to be tried in it, or the edit does not fit.
    """
    if answer.edit.strip():
        summary = said(answer.why, WHY_CHARACTERS) or "an edit without a reason"
        return editor.made(answer.edit, parent, session_id=session_id, summary=summary)
    if not is_new_point:
        raise NotApplied(_NOTHING)
    if parent.code is None:
        raise NotApplied(_NEEDS_TRIAL)
    return parent.code


def _repeat(params: dict[str, ParamValue], code: CodeState | None, inquiry: Inquiry) -> str | None:
    tried = Tried(inquiry.task)
    tried.follow(inquiry.history.search)
    trials = {trial.trial_id: trial for trial in inquiry.history.search}
    return repeat_in_words(params, inquiry.task, tried, trials, code)
