"""Finding trials by words, over all sessions, losers included. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agent.planner.compared import hold_against
from agent.planner.configuration import configuration_id, default_params
from agent.planner.objective import gain
from agent.store.views import SuggestionView, TrialState, TrialView
from agent.task import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """One session, as far as a search looks at it."""

    task: Task
    trials: Sequence[TrialView]
    suggestions: Sequence[SuggestionView] = ()
    best_configuration: str | None = None
    """What the session ended with, and its verdict on it."""
    verdict: str | None = None
    hypotheses: dict[str, str] | None = None
    """Statements of its hypotheses by id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    trial: TrialView
    task_name: str
    metric: str
    gain_over_default: float | None
    """Of its value over that of its session's default with the same seed; None: one of them has no value."""
    verdict: str
    """How its configuration stands against the default, by code."""


def search(shelves: Iterable[Shelf], text: str) -> list[Found]:
    """Trials in which every word of `text` occurs, newest first. No words: all of them."""
    found = [_found(shelf, trial) for shelf in shelves for trial in matching(shelf, text)]
    return sorted(found, key=lambda one: (one.trial.proposed_at, one.trial.number), reverse=True)


def matching(shelf: Shelf, text: str) -> list[TrialView]:
    """Trials of one session in which every word of `text` occurs, in their order."""
    words = text.lower().split()
    return [trial for trial in shelf.trials if not words or _holds(_text(shelf, trial), words)]


def _holds(text: str, words: Sequence[str]) -> bool:
    return all(word in text for word in words)


def standing(shelf: Shelf, trial: TrialView) -> str:
    """How a trial's configuration stands against its session's default, in one or two words."""
    if trial.configuration == _default(shelf.task):
        return "default"
    if shelf.verdict is not None and trial.configuration == shelf.best_configuration:
        return shelf.verdict
    held = hold_against(
        [t for t in shelf.trials if t.configuration == trial.configuration],
        [t for t in shelf.trials if t.configuration == _default(shelf.task)],
        shelf.task,
    )
    if held.n_pairs:
        return f"{held.comparison.value} ({held.n_pairs})"
    return "not replicated" if trial.value is not None else "no value"


def _found(shelf: Shelf, trial: TrialView) -> Found:
    return Found(
        trial=trial,
        task_name=shelf.task.task,
        metric=shelf.task.objective.metric,
        gain_over_default=gain_over_default(shelf, trial),
        verdict=standing(shelf, trial),
    )


def gain_over_default(shelf: Shelf, trial: TrialView) -> float | None:
    """Of its value over the default's with the same seed; None: one of them has none."""
    if trial.value is None or not trial.is_at_search_fidelity:
        return None
    for other in shelf.trials:
        is_default = other.configuration == _default(shelf.task) and other.seed == trial.seed
        is_measured = other.state is TrialState.MEASURED and other.value is not None
        if is_default and is_measured and other.is_at_search_fidelity and other.value is not None:
            return gain(trial.value, other.value, shelf.task.objective.direction)
    return None


def _default(task: Task) -> str:
    return configuration_id(default_params(task))


def _text(shelf: Shelf, trial: TrialView) -> str:
    parts = [
        trial.trial_id,
        trial.session_id,
        trial.job_id,
        trial.why,
        trial.note,
        trial.exit_reason,
        trial.suggested_by,
        trial.purpose.value,
        trial.state.value,
        shelf.task.task,
        shelf.task.description,
        (shelf.hypotheses or {}).get(trial.hypothesis or ""),
        *(f"{name}={value}" for name, value in trial.params.items()),
        *(f"{one.why} {one.suggested_by}" for one in shelf.suggestions if one.trial_id == trial.trial_id),
    ]
    return "\n".join(part for part in parts if part).lower()
