"""One thing that a person says to a session, and whether it can be said of its task as it is now. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from pydantic import ValidationError

from agent.planner.forbidden import canonical_condition, why_no_condition
from agent.planner.suggested import read_suggestion
from agent.store.views import ParamValue
from agent.task import BRIEF_CHARACTERS, Budgets, Task

MOST_CHARACTERS = 2_000
"""Of a sentence."""
BUDGETS = ("trials", "wall_minutes", "device_seconds", "tokens", "cost_usd")


class Kind(StrEnum):
    FORBID = "forbid"
    """Nothing that a condition covers is tried any more."""
    ALLOW = "allow"
    """A condition is lifted."""
    BUDGET = "budget"
    HYPOTHESIS = "hypothesis"
    """An idea: said to the model, and tried where it names parameters."""
    PAUSE = "pause"
    """Nothing new starts; what runs goes on."""
    GO_ON = "go_on"
    TAKE_OVER = "take_over"
    """The session suggests nothing itself: only people and outside agents do."""
    HAND_BACK = "hand_back"


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    kind: Kind
    text: str = ""
    """The condition, or what is thought; for `budget` and the others, why."""
    budget: str | None = None
    """As in the task file, without `budgets.`."""
    value: float | None = None
    """Its new limit; None with `budget`: no limit any more."""
    params: dict[str, ParamValue] = field(default_factory=dict)
    """Of a hypothesis: what to try; the rest is as in the best so far."""

    @property
    def words(self) -> str:
        """What was said, for people: `forbids lr > 0.1`."""
        why = f" ({self.text})" if self.text else ""
        match self.kind:
            case Kind.FORBID:
                return f"forbids {canonical_condition(self.text)}"
            case Kind.ALLOW:
                return f"allows again {canonical_condition(self.text)}"
            case Kind.BUDGET:
                limit = "no limit" if self.value is None else f"{self.value:g}"
                return f"sets budgets.{self.budget} to {limit}{why}"
            case Kind.HYPOTHESIS:
                tried = ", ".join(f"{name}={value}" for name, value in self.params.items())
                return f"expects: {self.text}" + (f"; to try: {tried}" if tried else "")
            case Kind.PAUSE:
                return f"pauses the session{why}"
            case Kind.GO_ON:
                return f"lets the session go on{why}"
            case Kind.TAKE_OVER:
                return f"takes over{why}"
            case Kind.HAND_BACK:
                return f"hands back{why}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """How a session goes on, after all that was said to it."""

    task: Task
    is_paused: bool = False
    is_taken_over: bool = False


class CanNotSay(ValueError):
    """The message says what is wrong and what would do."""


def steered(course: Course, word: Word, *, by: str, search_closed: str | None = None) -> Course:
    """The course after one more word.

    Args:
        by: user name of whoever says it.
        search_closed: why the search of the session is over; None: it is not.

    Raises:
        CanNotSay: it contradicts the task, or comes too late.
    """
    if len(word.text) > MOST_CHARACTERS:
        raise CanNotSay(f"{len(word.text)} characters are more than can be said at once ({MOST_CHARACTERS})")
    task = course.task
    match word.kind:
        case Kind.FORBID:
            return _with(course, forbid=_forbidden(task, word.text))
        case Kind.ALLOW:
            return _with(course, forbid=_allowed(task, word.text))
        case Kind.BUDGET:
            return _with(course, budgets=_budgets(task, word, search_closed))
        case Kind.HYPOTHESIS:
            return _with(course, brief=_brief(task, word, by, search_closed))
        case Kind.PAUSE | Kind.GO_ON:
            return replace(course, is_paused=word.kind is Kind.PAUSE)
        case Kind.TAKE_OVER | Kind.HAND_BACK:
            return replace(course, is_taken_over=word.kind is Kind.TAKE_OVER)


def understood(word: Word, task: Task) -> Word:
    """The same word with what is to be tried in the types of the space; for one that `steered` has taken."""
    return replace(word, params=read_suggestion(_as_texts(word.params), task).params) if word.params else word


def _with(course: Course, **changed: Any) -> Course:
    return replace(course, task=course.task.model_copy(update=changed))


def _forbidden(task: Task, text: str) -> tuple[str, ...]:
    wrong = why_no_condition(text, task)
    if wrong is not None:
        raise CanNotSay(wrong)
    condition = canonical_condition(text)
    if condition in map(canonical_condition, task.forbid):
        raise CanNotSay(f"{condition} is forbidden already")
    if len(task.forbid) >= 100:
        raise CanNotSay("100 conditions are forbidden already; join some, or allow some again")
    return (*task.forbid, condition)


def _allowed(task: Task, text: str) -> tuple[str, ...]:
    try:
        condition = canonical_condition(text)
    except ValueError as error:
        raise CanNotSay(str(error)) from error
    left = tuple(one for one in task.forbid if canonical_condition(one) != condition)
    if left == task.forbid:
        known = "; ".join(map(canonical_condition, task.forbid)) or "nothing"
        raise CanNotSay(f"{condition} is not forbidden; forbidden is: {known}")
    return left


def _budgets(task: Task, word: Word, search_closed: str | None) -> Budgets:
    if word.budget not in BUDGETS:
        raise CanNotSay(f"{word.budget!r} is no budget; there are: {', '.join(BUDGETS)}")
    if search_closed is not None:
        raise CanNotSay(f"the search is over ({search_closed}), and the best is chosen once; start another session")
    value: float | int | None = word.value
    if value is not None and word.budget in ("trials", "tokens"):
        if value != int(value):
            raise CanNotSay(f"budgets.{word.budget} is a whole number, not {value:g}")
        value = int(value)
    try:
        return Budgets.model_validate(task.budgets.model_dump() | {word.budget: value})
    except ValidationError as error:
        raise CanNotSay(f"budgets.{word.budget}: {error.errors()[0]['msg']}") from error


def _brief(task: Task, word: Word, by: str, search_closed: str | None) -> str | None:
    if not word.text.strip():
        raise CanNotSay("a hypothesis is a sentence: what is expected, and why")
    if search_closed is not None:
        raise CanNotSay(f"the search is over: {search_closed}")
    if word.params:
        wrong = read_suggestion(_as_texts(word.params), task).problems
        if wrong:
            raise CanNotSay("; ".join(wrong))
    if task.model is None:
        if not word.params:
            raise CanNotSay("no model reads it in this session; name what to try, as: --try lr=0.3")
        return task.brief
    brief = "\n".join(part for part in (task.brief, f"{by} says: {word.text.strip()}") if part)
    if len(brief) > BRIEF_CHARACTERS:
        raise CanNotSay(f"the brief would have {len(brief)} characters; {BRIEF_CHARACTERS} are read")
    return brief


def _as_texts(params: Mapping[str, ParamValue]) -> dict[str, str]:
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in params.items()}
