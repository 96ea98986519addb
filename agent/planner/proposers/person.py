"""People's ideas as proposals: they come first of all, each is answered once, with a trial or with a reason. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent.planner.configuration import canonical, configuration_id, default_params, problems
from agent.planner.history import History, Proposal
from agent.planner.standings import leader
from agent.planner.suggested import allowed
from agent.store.views import ParamValue, Purpose, SuggestionView, TrialView
from agent.task import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What becomes of a suggestion: exactly one of the two is set."""

    suggestion_id: int
    proposal: Proposal | None = None
    note: str | None = None
    """Why it is not tried, and what would be."""


def answers(ideas: Sequence[SuggestionView], task: Task, history: History, room: int) -> list[Answer]:
    """Answers to those that wait, in their order. Before the default configuration is proposed, all of them wait.

    What a person left open is filled in from the configuration that leads, or from the default.

    Args:
        room: configurations that the search may still try.
    """
    if not history.search:
        return []
    known = {trial.configuration: trial for trial in history.search}
    found: list[Answer] = []
    made: set[str] = set()
    for idea in ideas:
        if idea.trial_id is not None or idea.note is not None:
            continue
        params = _filled_in(idea, task, history)
        name = configuration_id(params)
        note = _objection(idea, params, task, known.get(name), is_new=name not in made, has_room=room > len(made))
        if note is not None:
            found.append(Answer(suggestion_id=idea.suggestion_id, note=note))
            continue
        made.add(name)
        found.append(Answer(suggestion_id=idea.suggestion_id, proposal=_proposal(idea, params, name, task)))
    return found


def _filled_in(idea: SuggestionView, task: Task, history: History) -> dict[str, ParamValue]:
    best = leader(task, history)
    params = {**(best.params if best is not None else default_params(task)), **idea.params}
    return params if problems(params, task) else canonical(params, task)


def _objection(
    idea: SuggestionView,
    params: dict[str, ParamValue],
    task: Task,
    known: TrialView | None,
    *,
    is_new: bool,
    has_room: bool,
) -> str | None:
    wrong = problems(params, task)
    if wrong:
        ranges = "; ".join(f"{n}: {allowed(task.space[n])}" for n in idea.params if n in task.space)
        return f"{'; '.join(wrong)}. Allowed: {ranges or ', '.join(task.space)}"
    if known is not None:
        value = "" if known.value is None else f", {task.objective.metric} {known.value:.6g}"
        return f"the same configuration as {known.trial_id} ({known.state}{value})"
    if not is_new:
        return "the same configuration as the suggestion before it"
    return None if has_room else f"all {task.budgets.trials} trials of the search are proposed (budgets.trials)"


def _proposal(idea: SuggestionView, params: dict[str, ParamValue], name: str, task: Task) -> Proposal:
    given = ", ".join(f"{key}={value}" for key, value in idea.params.items())
    return Proposal(
        params=params,
        configuration=name,
        seed=task.seeds.search,
        purpose=Purpose.SEARCH,
        suggested_by=idea.suggested_by,
        why=f"{idea.why} ({given}; the rest as in the best so far)",
    )
