"""The plan of a session: what is claimed, which phase it is in, and what to run next. Pure.

There is no barrier. While search trials remain they are proposed; when all are launched, free slots take the default
configuration's fresh seeds, which are needed anyway; when all have ended, the best is fixed and its fresh seeds and
the held-out looks follow at once. Closing the search is final: the best is chosen once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from agent.planner.budget import Spend, reserve_reached, spent
from agent.planner.claims import first_claim
from agent.planner.configuration import configuration_id, default_params, size
from agent.planner.held_out import HeldOutLedger
from agent.planner.history import History, Proposal
from agent.planner.hypothesis import Hypothesis
from agent.planner.objective import reaches
from agent.planner.proposers.default_first import DefaultFirst
from agent.planner.proposers.protocol import Proposer
from agent.planner.proposers.replicator import Arm, Replicator, fresh_seeds
from agent.planner.standings import leader
from agent.store.views import Purpose, TrialState, TrialView
from agent.task import Task


class Phase(StrEnum):
    SEARCH = "search"
    """Search trials remain or are in flight."""
    CONFIRM = "confirm"
    """The best is fixed; fresh seeds of it and of the default are missing."""
    HELD_OUT = "held_out"
    """Only looks at the held-out metric are missing."""
    DONE = "done"
    """Nothing more will be run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    revision: int
    phase: Phase
    hypotheses: tuple[Hypothesis, ...]
    """In the order of opening; the first is the session's own claim. Revisions only add to them or close them."""
    error_budget: float
    """Chance that the whole session accepts any false claim."""
    incumbent: str | None = None
    """Configuration that is best by comparison: the best standing of those that were shown to beat the default, else
    the default. None: nothing is measured yet."""
    leader: str | None = None
    """Configuration that is best by its values alone; a single one flatters. None: nothing is measured yet."""
    leader_value: float | None = None
    """What its values said when it came to lead, in the metric's units."""
    chosen: str | None = None
    """Configuration that is confirmed at the end; chosen once, when the search has ended. None: not yet."""
    search_closed: str | None = None
    """Why no more search trials are proposed; None: they are."""
    spent: str | None = None
    """The budget that is used up: nothing more is launched."""
    reason: str = "the session starts"
    """Why this revision differs from the one before."""
    next_trials: tuple[str, ...] = ()
    """Ids of what was in flight or ready when it was written."""

    @property
    def claim(self) -> Hypothesis:
        """The session's own: the best found beats the default."""
        return self.hypotheses[0]

    def about(self, configuration: str) -> Hypothesis | None:
        """The claim that this configuration beats the default, made on the way; None: there is none."""
        return next((h for h in self.hypotheses[1:] if h.configuration == configuration), None)


def first_plan(task: Task) -> Plan:
    return Plan(
        revision=1,
        phase=Phase.SEARCH,
        hypotheses=(first_claim(task),),
        error_budget=task.trust.error_budget,
    )


def revised(plan: Plan, task: Task, history: History, spend: Spend) -> Plan:
    """The plan after what is known now; the same object when nothing changed."""
    used_up = plan.spent or spent(task, spend)
    closed = plan.search_closed or used_up or _search_closes(task, history, spend)
    best = leader(task, history)
    chosen = plan.chosen
    if chosen is None and closed is not None and best is not None and search_has_ended(_without_ready_search(history)):
        chosen = best.configuration
    phase = _phase(task, history, chosen, closed=closed is not None, is_spent=used_up is not None)
    default = configuration_id(default_params(task))
    found = replace(
        plan,
        phase=phase,
        spent=used_up,
        search_closed=closed,
        chosen=chosen,
        incumbent=default if best is not None else None,
        leader=best.configuration if best else None,
        leader_value=best.value if best else None,
    )
    if found == plan:
        return plan
    return replace(found, revision=plan.revision + 1, reason=_what_changed(plan, found, best))


def next_work(plan: Plan, task: Task, history: History, n: int, search: Proposer) -> list[Proposal]:
    """At most `n` proposals, most wanted first. Fewer: there is nothing useful to run just now."""
    if n < 1 or plan.spent is not None or plan.phase is Phase.DONE:
        return []
    work: list[Proposal] = []
    if plan.search_closed is None:
        room = n_search_trials(task) - len(history.search)
        first = DefaultFirst(task).ask(history, min(n, room))
        work = first or search.ask(history, min(n, room))
    n_new = sum(1 for proposal in work if proposal.purpose is Purpose.SEARCH)
    if plan.search_closed is not None or len(history.search) + n_new >= n_search_trials(task):
        work.extend(_confirming_work(plan, task, history, n - len(work)))
    return work[:n]


def arms(task: Task, history: History, chosen: str | None) -> tuple[Arm, ...]:
    """The sides that are compared: the default, and the chosen configuration once there is one and it is another."""
    params = default_params(task)
    default = Arm(name="default", params=params, configuration=configuration_id(params))
    if chosen is None or chosen == default.configuration:
        return (default,)
    found = next(trial.params for trial in history.search if trial.configuration == chosen)
    return default, Arm(name="best", params=found, configuration=chosen)


def n_search_trials(task: Task) -> int:
    """Distinct configurations that the search may try: the budget, or the whole space where that is smaller."""
    n_points = size(task)
    return task.budgets.trials if n_points is None else min(task.budgets.trials, n_points)


def search_has_ended(history: History) -> bool:
    return all(trial.is_ended for trial in history.search)


def _confirming_work(plan: Plan, task: Task, history: History, n: int) -> list[Proposal]:
    sides = arms(task, history, plan.chosen)
    work: list[Proposal] = []
    for side in reversed(sides):
        work.extend(Replicator(task, side, sides).ask(history, n - len(work)))
    if plan.chosen is not None:
        work.extend(_looks(task, history, sides[-1], n - len(work)))
    return work


def _looks(task: Task, history: History, chosen: Arm, n: int) -> list[Proposal]:
    """What is missing of the held-out looks; a look that failed was a look."""
    ledger = HeldOutLedger.of(task, history)
    wanted = range(len(ledger.looks) + 1, ledger.n_allowed + 1)
    return [
        Proposal(
            params=chosen.params,
            configuration=chosen.configuration,
            seed=task.seeds.first_fresh + look - 1,
            purpose=Purpose.HELD_OUT,
            suggested_by="replicator",
            why=f"look {look} of {ledger.n_allowed} at {ledger.metric}, for the chosen configuration alone",
        )
        for look in list(wanted)[: max(n, 0)]
    ]


def _search_closes(task: Task, history: History, spend: Spend) -> str | None:
    best = history.best(task.objective.direction)
    if best is not None and best.value is not None and reaches(best.value, task.objective):
        return f"the target {task.objective.target:g} was reached by {best.trial_id}"
    if len(history.search) >= n_search_trials(task) and search_has_ended(history):
        is_whole = n_search_trials(task) < task.budgets.trials
        return "every configuration of the space was tried" if is_whole else "all search trials have ended"
    if spend.exhausted is not None and search_has_ended(history):
        return spend.exhausted
    return reserve_reached(task, history, spend)


def _phase(task: Task, history: History, chosen: str | None, *, closed: bool, is_spent: bool) -> Phase:
    if is_spent:
        return (
            Phase.DONE
            if not history.wanted_in_flight
            else (Phase.CONFIRM if search_has_ended(history) else Phase.SEARCH)
        )
    if not closed or not search_has_ended(_without_ready_search(history)):
        return Phase.SEARCH
    if history.best(task.objective.direction) is None:
        return Phase.DONE if not history.wanted_in_flight else Phase.SEARCH
    sides = arms(task, history, chosen)
    if not all(_is_measured(history, side, seed) for side in sides for seed in fresh_seeds(task, history, sides)):
        return Phase.CONFIRM
    if not HeldOutLedger.of(task, history).is_complete:
        return Phase.HELD_OUT
    return Phase.DONE if not history.wanted_in_flight else Phase.CONFIRM


def _without_ready_search(history: History) -> History:
    """A search proposal that was never submitted does not hold up a closed search; it is withdrawn."""
    ready = {trial.trial_id for trial in history.ready}
    return replace(history, search=tuple(t for t in history.search if t.trial_id not in ready))


def _is_measured(history: History, side: Arm, seed: int) -> bool:
    run = history.replicates.get((side.configuration, seed))
    return run is not None and run.state is TrialState.MEASURED


def unwanted(plan: Plan, task: Task, history: History) -> Sequence[TrialView]:
    """Ready proposals that the plan no longer wants: to be withdrawn, not run."""
    if plan.spent is not None or plan.phase is Phase.DONE:
        return history.ready
    if plan.search_closed is None:
        return ()
    sides = arms(task, history, plan.chosen)
    wanted = {(side.configuration, seed) for side in sides for seed in fresh_seeds(task, history, sides)}
    return [
        trial
        for trial in history.ready
        if trial.purpose is Purpose.SEARCH
        or (trial.purpose is Purpose.REPLICATE and (trial.configuration, trial.seed) not in wanted)
    ]


def _what_changed(old: Plan, new: Plan, best: TrialView | None) -> str:
    said = []
    if new.leader != old.leader and best is not None:
        before = "" if old.leader_value is None else f" (before: {old.leader_value:.6g})"
        said.append(f"{best.trial_id} is the best so far with {best.value:.6g}{before}")
    if new.search_closed and not old.search_closed:
        said.append(f"the search is closed: {new.search_closed}")
    if new.spent and not old.spent:
        said.append(f"nothing more is launched: {new.spent}")
    if new.phase is not old.phase:
        said.append(f"from {old.phase} to {new.phase}")
    return "; ".join(said) or "values changed"
