"""Fixes: a failed trial whose diagnosis says which parameter to change is tried again with that change. Pure.

An arm of the portfolio like others, so that what fixes bring decides how many of them are made, and the control arm
keeps its share; it is there only while it has something to mend. Bounded: two tries for a trial that failed by itself,
and a tenth of the search.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from agent.planner.configuration import configuration_id, problems
from agent.planner.history import History, Proposal
from agent.planner.plan import n_search_trials
from agent.planner.repetition import Tried
from agent.store.views import Purpose, TrialFacts, TrialState, TrialView
from agent.task import Task

DOCTOR = "doctor"
MOST_TRIES = 2
"""Fixes in a row, each of the failure of the one before."""
SHARE = 0.1
"""Of the trials of the search."""
LEAST_IN_ALL = 2


class Doctor:
    """Implements `Proposer`."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._tried = Tried(task)
        self._most = max(LEAST_IN_ALL, int(SHARE * n_search_trials(task)))

    @property
    def name(self) -> str:
        return DOCTOR

    def tell(self, history: History) -> None:
        """The history says it all."""

    def ask(self, history: History, n: int) -> list[Proposal]:
        """Fixes of trials that failed and have none yet, the oldest failure first."""
        room = self._most - sum(1 for trial in history.search if trial.facts.fixes is not None)
        wanted = max(min(n, room), 0)
        if wanted == 0:
            return []
        self._tried.follow(history.search)
        found: dict[str, Proposal] = {}
        for proposal in self._fixes(history):
            if len(found) < wanted:
                found.setdefault(proposal.configuration, proposal)
        return list(found.values())

    def _fixes(self, history: History) -> Iterator[Proposal]:
        by_id = {trial.trial_id: trial for trial in history.search}
        mended = {trial.facts.fixes for trial in history.search}
        for trial in history.search:
            if trial.trial_id in mended or not _can_be_mended(trial) or n_tries(trial, by_id) >= MOST_TRIES:
                continue
            proposal = self._fix(trial)
            if proposal is not None:
                yield proposal

    def _fix(self, trial: TrialView) -> Proposal | None:
        """None: it lies outside of the space, or was tried."""
        found = trial.facts.diagnosis
        if found is None or found.change is None:
            return None
        params = {**trial.params, **found.change}
        if problems(params, self._task) or self._tried.objection(params) is not None:
            return None
        changes = ", ".join(f"{name} {trial.params[name]} to {value}" for name, value in found.change.items())
        doubt = "" if found.is_sure else " (suspected)"
        return Proposal(
            params=params,
            configuration=configuration_id(params),
            seed=trial.seed,
            purpose=Purpose.SEARCH,
            suggested_by=self.name,
            why=f"{trial.trial_id} failed: {found.failure.value.replace('_', ' ')}{doubt}; changed: {changes}",
            facts=replace(TrialFacts(), fixes=trial.trial_id),
        )


def n_tries(trial: TrialView, by_id: dict[str, TrialView]) -> int:
    """How many fixes in a row it is the last of; 0: it is none."""
    n, at = 0, trial.facts.fixes
    while at is not None and n <= MOST_TRIES:
        n += 1
        before = by_id.get(at)
        at = None if before is None else before.facts.fixes
    return n


def _can_be_mended(trial: TrialView) -> bool:
    found = trial.facts.diagnosis
    return trial.state is TrialState.INVALID and found is not None and found.change is not None
