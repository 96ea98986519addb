"""Fixes: a failed trial whose diagnosis says which parameter to change is tried again with that change. Pure.

An arm of the portfolio like others, so that what fixes bring decides how many of them are made, and the control arm
keeps its share; it is there only while it has something to mend. Bounded: two tries for a trial that failed by itself,
and a tenth of the search; one at a time, so that each learns from the one before.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from agent.doctor.diagnosis import BY_RULES, Diagnosis
from agent.planner.configuration import configuration_id, problems
from agent.planner.history import History, Proposal
from agent.planner.plan import n_search_trials
from agent.planner.repetition import Tried
from agent.store.views import ParamValue, Purpose, TrialFacts, TrialState, TrialView
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
        """The next fix, if the one before has ended: of a fix that failed, else of the oldest failure without one."""
        made = [trial for trial in history.search if trial.facts.fixes is not None]
        if n < 1 or len(made) >= self._most or not all(trial.is_ended for trial in made):
            return []
        self._tried.follow(history.search)
        return list(islice(self._fixes(history), 1))

    def _fixes(self, history: History) -> Iterator[Proposal]:
        by_id = {trial.trial_id: trial for trial in history.search}
        mended = {trial.facts.fixes for trial in history.search}
        open_ones = [t for t in history.search if t.trial_id not in mended and _can_be_mended(t)]
        for trial in sorted(open_ones, key=lambda t: (-n_tries(t, by_id), t.number)):
            if n_tries(trial, by_id) >= MOST_TRIES:
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
        if problems(params, self._task) or self._tried.objection(params, trial.facts.edited) is not None:
            return None
        changes = ", ".join(
            f"{name} {_short(trial.params[name])} to {_short(value)}" for name, value in found.change.items()
        )
        doubt = "" if found.is_sure else " (suspected)"
        return Proposal(
            params=params,
            configuration=configuration_id(params, trial.facts.edited),
            seed=trial.seed,
            purpose=Purpose.SEARCH,
            suggested_by=self.name,
            why=f"{trial.trial_id} failed: {found.failure.value.replace('_', ' ')}{doubt}; changed: {changes}",
            facts=_origin(trial, found),
        )


def _origin(trial: TrialView, found: Diagnosis) -> TrialFacts:
    by_model = None if found.made_by == BY_RULES else found.made_by
    return TrialFacts(fixes=trial.trial_id, model=by_model, prompt=found.prompt, edited=trial.facts.edited)


def mends(task: Task) -> bool:
    """Whether what failed is mended: where the session searches, not where it runs a list of points."""
    return bool(set(task.search.use) - {"points", "replicator"})


def may_be_mended(task: Task, history: History) -> bool:
    """A fix is on its way, or can still be made."""
    under_way = any(trial.facts.fixes is not None and not trial.is_ended for trial in history.search)
    return mends(task) and (under_way or bool(Doctor(task).ask(history, 1)))


def n_tries(trial: TrialView, by_id: dict[str, TrialView]) -> int:
    """How many fixes in a row it is the last of; 0: it is none."""
    n, at = 0, trial.facts.fixes
    while at is not None and n <= MOST_TRIES:
        n += 1
        before = by_id.get(at)
        at = None if before is None else before.facts.fixes
    return n


def _short(value: ParamValue) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _can_be_mended(trial: TrialView) -> bool:
    found = trial.facts.diagnosis
    return trial.state is TrialState.INVALID and found is not None and found.change is not None
