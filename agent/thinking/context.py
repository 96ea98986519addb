"""What a model is shown when it is asked for ideas: small tables of what is known, within a fixed size. Pure.

The size does not grow with the session. Where all does not fit, every table loses rows at once, down to the last ones,
then whole tables are left out; the space, the objective, the best trials and the brief stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import prompts
from agent.llm.counting import tokens_of
from agent.llm.untrusted import fenced
from agent.planner.budget import Spend
from agent.planner.curve import Point
from agent.planner.forbidden import canonical_condition
from agent.planner.history import History
from agent.planner.plan import Plan
from agent.planner.ranking import ranking
from agent.planner.reach import may_leave
from agent.planner.standings import params_of
from agent.planner.suggested import allowed
from agent.store.views import SuggestionView
from agent.task import CategoricalParameter, FloatParameter, IntParameter, Task
from agent.thinking import tables
from agent.thinking.ideas import may_repeat
from agent.thinking.lessons import Lesson
from agent.thinking.room import PROMPT_TOKENS
from agent.thinking.tables import Table

PROMPT = "suggest"
"""Its name, and the purpose of the calls in the accounts."""
ROWS = (12, 8, 5, 3, 2)
"""Rows of each table, the largest that fits."""
_LEFT_OUT = (
    "claims", "tried near", "curves", "refused", "effects", "lessons", "newest trials", "failures", "people's ideas",
    "under way",
)  # fmt: skip
"""Tables that a model can do without, what is missed least first."""
_CURVE_POINTS = 6
_CHOICES_CHARACTERS = 300
_SPACE_CHARACTERS = 6_000
_BRIEF_CHARACTERS = 3_000
_DESCRIPTION_CHARACTERS = 600
_NOTES = "failures, lessons, ideas, refusals"
_NOTES_CHARACTERS = 10_000
_OF_THE_LIMIT = 0.35
"""Of the limit at most so much goes to brief and description each; estimated with three characters a token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """All that a prompt is made of."""

    task: Task
    history: History
    """With what waits already, as proposed."""
    plan: Plan
    spend: Spend
    lessons: Sequence[Lesson] = ()
    ideas: Sequence[SuggestionView] = ()
    refusals: Sequence[str] = ()
    """Of the answer before."""
    curves: Mapping[str, Sequence[Point]] = field(default_factory=dict)
    """Of trials under way and of the leader, by trial id, as far as they were looked at."""

    @property
    def may_stop(self) -> bool:
        """There are curves of trials that run."""
        return any(trial.is_in_flight and trial.trial_id in self.curves for trial in self.history.search)

    @property
    def may_repeat(self) -> bool:
        return may_repeat(self.task)


def prompt_for(situation: Situation, n: int, *, limit: int = PROMPT_TOKENS) -> prompts.Rendered | None:
    """The prompt with as many rows, then tables, as fit into `limit` tokens; None: not even the smallest does."""
    sizes = [(rows, 0) for rows in ROWS] + [(ROWS[-1], n_out) for n_out in range(1, len(_LEFT_OUT) + 1)]
    for n_rows, n_out in sizes:
        rendered = _rendered(situation, n, limit, _tables(situation, n_rows, _LEFT_OUT[:n_out]))
        if tokens_of(rendered.system) + tokens_of(rendered.user) <= limit:
            return rendered
    return None


def _rendered(situation: Situation, n: int, limit: int, known: Sequence[Table]) -> prompts.Rendered:
    task = situation.task
    share = int(limit * _OF_THE_LIMIT * 3)
    return prompts.load(PROMPT).render(
        n=n,
        objective=objective_text(task),
        space=space_text(task),
        may_stop=situation.may_stop,
        may_repeat=situation.may_repeat,
        may_leave=may_leave(task),
        description=_fenced(task.description, "description of the task", min(_DESCRIPTION_CHARACTERS, share)),
        forbidden="\n".join(map(canonical_condition, task.forbid)),
        brief=_fenced(task.brief or "", "the researcher's brief", min(_BRIEF_CHARACTERS, share)),
        tables=_joined(one for one in known if not one.is_untrusted),
        notes=_fenced(_joined(one for one in known if one.is_untrusted), _NOTES, _NOTES_CHARACTERS),
    )


def _joined(known: Iterable[Table]) -> str:
    return "\n\n".join(f"{one.name}:\n{one.text}" for one in known if one.rows)


def _tables(situation: Situation, rows: int, left_out: Sequence[str] = ()) -> list[Table]:
    task, history = situation.task, situation.history
    leader = ranking(task, history).leader
    found = [
        tables.capacity(task, history, situation.spend),
        tables.budgets_left(task, situation.spend),
        tables.best(task, history, rows),
        tables.recent(task, history, rows),
        tables.running(task, history, rows),
        tables.effects(task, history, rows),
        tables.claims(situation.plan.hypotheses, max(rows // 2, 1)),
        tables.curves(task, dict(list(situation.curves.items())[:rows]), _CURVE_POINTS),
        tables.failures(task, history, max(rows // 2, 1)),
        tables.lessons(situation.lessons),
        tables.ideas(situation.ideas, max(rows // 2, 1)),
        tables.refusals(situation.refusals),
    ]
    if leader is not None:
        found.insert(4, tables.near(task, history, params_of(history)[leader.configuration], max(rows // 2, 1)))
    return [one for one in found if one.name not in left_out]


def objective_text(task: Task) -> str:
    """`maximize val_accuracy; a gain of less than 0.002 is worth nothing`."""
    objective = task.objective
    text = f"{objective.direction.value} {objective.metric}"
    if objective.min_effect > 0:
        text += f"; a gain of less than {objective.min_effect:g} is worth nothing"
    if objective.target is not None:
        text += f"; the target is {objective.target:g}"
    return text


def space_text(task: Task) -> str:
    """One line a parameter: what it may be, and its default. Of bounded length: what is cut off can not be set."""
    lines = [f"{name}: {_allowed(name, task)}, default {parameter.default}" for name, parameter in task.space.items()]
    kept: list[str] = []
    n_left = _SPACE_CHARACTERS
    for line in lines:
        n_left -= len(line) + 1
        if n_left < 0:
            kept.append(f"({len(lines) - len(kept)} more parameters, which keep their values from the best trial)")
            break
        kept.append(line)
    return "\n".join(kept)


def _allowed(name: str, task: Task) -> str:
    text, parameter = allowed(name, task), task.space[name]
    match parameter:
        case CategoricalParameter():
            cut = text if len(text) <= _CHOICES_CHARACTERS else f"{text[:_CHOICES_CHARACTERS].rpartition(', ')[0]}, ..."
            return f"one of {cut}"
        case FloatParameter() | IntParameter():
            return f"{text} (logarithmic)" if parameter.log else text


def _fenced(text: str, label: str, limit: int) -> str:
    return fenced(text, label=label, limit=limit) if text else ""
