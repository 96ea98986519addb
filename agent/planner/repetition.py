"""Repetition: what was tried already, what lies too near to it, and what to do when nothing new comes. Pure.

Two configurations are near when no numeric parameter differs by more than `EPSILON` of its range (of the logarithm
where the scale is logarithmic) and all categorical ones are equal: the seed changes more than such a step does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from agent.planner.configuration import configuration_id
from agent.planner.forbidden import forbidden
from agent.planner.geometry import Geometry
from agent.store.views import CodeState, ParamValue, TrialView
from agent.task import Task

EPSILON = 0.002
"""In parts of a parameter's range. A whole step of an integer on a coarse range is always more than that."""
STALE_PER_PARAMETER = 6
STALE_AT_LEAST = 24
"""So many measured trials in a row without one among the best: the search is stale."""


class Step(StrEnum):
    """What to do about it, in the order in which it is tried."""

    QUERY_MEMORY = "query memory"
    """Look at what earlier sessions lost near here, and keep away from it."""
    SWITCH_SURFACE = "switch surface"
    """Leave a proposer, or the parameters that it moves, alone; its slots go to the others."""
    ASK = "ask"
    """Tell the person: an idea from outside is what is missing."""
    STOP = "stop"
    """Nothing new can be proposed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Escalation:
    step: Step
    surface: str
    """The proposer that it is about, or `search` for all of them."""
    reason: str
    """For the person, with numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """A configuration that an earlier session on the same space tried and that did not beat its default."""

    trial_id: str
    params: dict[str, ParamValue]
    value: float


class Tried:
    """The configurations that were tried, with a fast look for near ones. A cache: follows the history."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._geometry = Geometry(task)
        self._names: dict[str, int] = {}
        self._rows = np.empty((64, len(task.space)))
        self._trial_ids: list[str] = []
        self._trees: list[str | None] = []

    def follow(self, trials: Sequence[TrialView]) -> None:
        """Bring it up to the search trials of a history; withdrawn ones are forgotten."""
        is_longer = len(self._trial_ids) <= len(trials) and all(
            known == trial.trial_id for known, trial in zip(self._trial_ids, trials, strict=False)
        )
        if not is_longer:
            self._names, self._trial_ids, self._trees = {}, [], []
        for trial in trials[len(self._trial_ids) :]:
            self.add(trial.trial_id, trial.configuration, trial.params, trial.facts.edited)

    def add(
        self, trial_id: str, configuration: str, params: Mapping[str, ParamValue], edited: CodeState | None = None
    ) -> None:
        at = len(self._trial_ids)
        if at == len(self._rows):
            self._rows = np.vstack([self._rows, np.empty_like(self._rows)])
        self._rows[at] = self._geometry.places(params)
        self._trial_ids.append(trial_id)
        self._trees.append(None if edited is None else edited.tree)
        self._names.setdefault(configuration, at)

    def objection(self, params: Mapping[str, ParamValue], edited: CodeState | None = None) -> str | None:
        """Why a configuration is not worth proposing, in words; None: it is new, and nobody forbade it."""
        found = self.repeats(params, edited)
        if found is not None:
            return found[1]
        condition = forbidden(params, self._task) if self._task.forbid else None
        return None if condition is None else f"forbidden: {condition}"

    def repeats(self, params: Mapping[str, ParamValue], edited: CodeState | None = None) -> tuple[str, str] | None:
        """Which trial a configuration repeats, and in words how; None: it is new."""
        known = self._names.get(configuration_id(params, edited))
        if known is not None:
            return self._trial_ids[known], f"the same configuration as {self._trial_ids[known]}"
        near = self.near(params, edited) if self._trial_ids and self._task.space else None
        if near is None:
            return None
        return near, f"the same as {near} but for less than {EPSILON:g} of the range of every parameter"

    def near(self, params: Mapping[str, ParamValue], edited: CodeState | None = None) -> str | None:
        """The trial of the same code that lies nearest, if it is near."""
        n = len(self._trial_ids)
        apart = np.abs(self._rows[:n] - self._geometry.places(params))
        is_categorical = self._geometry.is_categorical
        apart[:, is_categorical] = apart[:, is_categorical] > 0
        farthest = apart.max(axis=1)
        if self._task.code is not None:
            tree = None if edited is None else edited.tree
            farthest[[one != tree for one in self._trees]] = np.inf
        at = int(np.argmin(farthest))
        return self._trial_ids[at] if farthest[at] < EPSILON else None


def repeat_in_words(
    params: Mapping[str, ParamValue],
    task: Task,
    tried: Tried,
    trials: Mapping[str, TrialView],
    edited: CodeState | None = None,
) -> str | None:
    """Which trial a configuration repeats and what that one came to; None: it is new.

    Args:
        trials: by their ids.
        edited: the code that it would run; None: the base.
    """
    repeats = tried.repeats(params, edited)
    if repeats is None:
        return None
    trial_id, text = repeats
    known = trials.get(trial_id)
    if known is None:
        return text
    value = "" if known.value is None else f", {task.objective.metric} {known.value:.6g}"
    return f"{text} ({known.state}{value})"


def stale_after(task: Task) -> int:
    return max(STALE_AT_LEAST, STALE_PER_PARAMETER * len(task.space))


def losers_near(
    task: Task, params: Mapping[str, ParamValue], memory: Iterable[Remembered], *, within: float = 0.2
) -> list[Remembered]:
    """What earlier sessions lost within a part of the range of a configuration, nearest first."""
    geometry = Geometry(task)
    here = geometry.places(params)[None, :]
    found = []
    for loser in memory:
        distance = float(geometry.differences(here, geometry.places(loser.params)[None, :]).max())
        if distance <= within:
            found.append((distance, loser.trial_id, loser))
    return [loser for _, _, loser in sorted(found, key=lambda one: one[:2])]
