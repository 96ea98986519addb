"""Ideas from outside of a session as proposals; each is answered once, with a trial or with a reason. Pure.

A person's idea comes first of all. An outside agent's waits for a slot of its arm, and is refused by the same rules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from agent.planner.configuration import canonical, configuration_id, problems
from agent.planner.history import History, Proposal
from agent.planner.ranking import best_params
from agent.planner.repetition import Tried, repeat_in_words
from agent.planner.suggested import allowed
from agent.store.views import CodeState, ParamValue, Purpose, SuggestionView, TrialFacts
from agent.task import Task

_BEFORE = "the suggestion before it"
_NO_EDITS = "this session changes no code: its task names no files that may be edited (code.editable)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """The configuration that a suggestion means."""

    params: dict[str, ParamValue] = field(default_factory=dict)
    code: CodeState | None = None
    """None: the session's base."""
    note: str | None = None
    """Why there is none, and what would do."""


PrepareEdit = Callable[[SuggestionView, History], Prepared]
"""Makes the code that a suggestion with an edit means; the same again where it is asked again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What becomes of a suggestion: exactly one of the two is set."""

    suggestion_id: int
    proposal: Proposal | None = None
    note: str | None = None
    """Why it is not tried, and what would be."""


def answers(
    ideas: Sequence[SuggestionView], task: Task, history: History, room: int, edits: PrepareEdit | None = None
) -> list[Answer]:
    """Answers to those that wait, in their order. Before the default configuration is proposed, all of them wait.

    What a person left open is filled in from the configuration that leads, or from the default.

    Args:
        room: configurations that the search may still try.
        edits: makes the code of those that edit it; None: the session changes no code.
    """
    if not history.search:
        return []
    tried = Tried(task)
    tried.follow(history.search)
    values = {trial.trial_id: trial for trial in history.search}
    found: list[Answer] = []
    n_made = 0
    for idea in ideas:
        if not is_waiting(idea):
            continue
        found_for = _prepared(idea, task, history, edits)
        params, code = found_for.params, found_for.code
        name = configuration_id(params, code)
        # The same idea again, or nearly, would be a second draw of the luck; replicates are made where they decide.
        repeat = None if found_for.note else repeat_in_words(params, task, tried, values, code)
        note = found_for.note or _misfit(idea, params, task) or repeat
        if note is None and n_made >= room:
            note = f"all {task.budgets.trials} trials of the search are proposed (budgets.trials)"
        if note is not None:
            found.append(Answer(suggestion_id=idea.suggestion_id, note=note))
            continue
        n_made += 1
        tried.add(_BEFORE, name, params, code)
        found.append(Answer(suggestion_id=idea.suggestion_id, proposal=_proposal(idea, params, code, task)))
    return found


def refusals(found: Sequence[Answer]) -> dict[int, str]:
    """Notes by the suggestion's number."""
    return {one.suggestion_id: one.note for one in found if one.note is not None}


def is_waiting(idea: SuggestionView) -> bool:
    """Neither tried nor refused."""
    return idea.trial_id is None and idea.note is None


def _prepared(idea: SuggestionView, task: Task, history: History, edits: PrepareEdit | None) -> Prepared:
    if idea.edit is None:
        return Prepared(params=_filled_in(idea, task, history))
    return Prepared(note=_NO_EDITS) if edits is None else edits(idea, history)


def _filled_in(idea: SuggestionView, task: Task, history: History) -> dict[str, ParamValue]:
    params = {**best_params(task, history.of_base()), **idea.params}
    return params if problems(params, task) else canonical(params, task)


def _misfit(idea: SuggestionView, params: dict[str, ParamValue], task: Task) -> str | None:
    wrong = problems(params, task)
    if not wrong:
        return None
    ranges = "; ".join(f"{n}: {allowed(n, task)}" for n in idea.params if n in task.space)
    return f"{'; '.join(wrong)}. Allowed: {ranges or ', '.join(task.space)}"


def _proposal(idea: SuggestionView, params: dict[str, ParamValue], code: CodeState | None, task: Task) -> Proposal:
    given = ", ".join(f"{key}={value}" for key, value in idea.params.items())
    left_open = "" if set(idea.params) >= set(task.space) else "; the rest as in the best so far"
    if idea.edit is not None:
        given, left_open = f"an edit of {idea.edit.parent}{', ' if given else ''}{given}", ""
    whose = "" if idea.arm is None else f"{idea.suggested_by}: "
    return Proposal(
        params=params,
        configuration=configuration_id(params, code),
        seed=task.seeds.search,
        purpose=Purpose.SEARCH,
        suggested_by=idea.arm or idea.suggested_by,
        why=f"{whose}{idea.why} ({given}{left_open})",
        facts=TrialFacts(expected=idea.expected, model=None if idea.arm is None else idea.suggested_by, edited=code),
    )
