"""The plan of a session: what is claimed, which phase it is in, and what to run next. Pure.

There is no barrier. While search trials remain they are proposed; when all are launched, free slots take the default
configuration's fresh seeds, which are needed anyway; when all have ended, the best is fixed and its fresh seeds and
the held-out looks follow at once. Closing the search is final: the best is chosen once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from agent.planner import replicates
from agent.planner.budget import Spend, reserve_reached, spent
from agent.planner.claims import first_claim, judged_at_the_end, judged_on_the_way, opened, predicted
from agent.planner.configuration import size
from agent.planner.confirming import arms, confirming_work, fresh_seeds, is_confirmed
from agent.planner.held_out import HeldOutLedger
from agent.planner.history import History, Proposal
from agent.planner.hypothesis import Hypothesis, Status
from agent.planner.objective import reaches
from agent.planner.parentage import parent_runs
from agent.planner.proposers.default_first import DefaultFirst
from agent.planner.proposers.points import n_untried
from agent.planner.proposers.protocol import Proposer
from agent.planner.ranking import Ranking, ranking
from agent.planner.reach import may_leave
from agent.planner.simplicity import choose
from agent.planner.statistics import Standing
from agent.store.views import Purpose, TrialView
from agent.task import Task

NOT_CONFIRMED = "nothing was to be confirmed (search.confirm: false)"


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
    chosen_over: str = ""
    """Which leader was passed over for it, and by which rule, in words; empty: it led."""
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
    ranks = ranking(task, history)
    best = ranks.leader
    used_up = plan.spent or spent(task, spend)
    closed = plan.search_closed or used_up or _search_closes(task, history, spend, best)
    found = replace(plan, spent=used_up, search_closed=closed)
    if plan.chosen is None and closed is not None and search_has_ended(task, _without_new(history)):
        choice = choose(task, history, ranks)
        found = found if choice is None else replace(found, chosen=choice.configuration, chosen_over=choice.why)
    found = replace(found, phase=_phase(found, task, history))
    found = replace(found, hypotheses=_judged(found, task, history, ranks))
    found = replace(
        found,
        incumbent=_incumbent(found, ranks),
        leader=best.configuration if best else None,
        leader_value=plan.leader_value if best is None or best.configuration == plan.leader else best.mean,
    )
    if found == plan:
        return plan
    return replace(found, revision=plan.revision + 1, reason=_what_changed(plan, found, history))


def told(plan: Plan, reason: str, *, after: int) -> Plan:
    """The revision after the one with that number: it differs in what people have said."""
    return replace(plan, revision=after + 1, reason=reason)


def reopened(plan: Plan) -> Plan:
    """A plan that was done goes on: what was closed without a decision is open again."""
    undecided = (Status.INCONCLUSIVE, Status.DROPPED)
    return replace(
        plan,
        phase=Phase.SEARCH,
        search_closed=None,
        spent=None,
        hypotheses=tuple(replace(h, status=Status.OPEN) if h.status in undecided else h for h in plan.hypotheses),
    )


def _judged(plan: Plan, task: Task, history: History, ranks: Ranking) -> tuple[Hypothesis, ...]:
    """The claims, new ones opened first, so that no share depends on what is read after it."""
    is_over = plan.phase is Phase.DONE
    first, *others = opened(plan.hypotheses, task, history, ranks)
    if plan.chosen is not None and task.search.confirm:
        if first.configuration is None and plan.chosen != first.reference:
            first = replace(first, prediction=predicted(task, history, ranks, plan.chosen, first.alpha))
        first = judged_at_the_end(first, task, history, plan.chosen, is_over=is_over)
    elif is_over:
        why = "the session ended before anything was chosen" if task.search.confirm else NOT_CONFIRMED
        first = replace(first, status=Status.DROPPED, note=why)
    return first, *(judged_on_the_way(one, task, history, is_over=is_over) for one in others)


def _incumbent(plan: Plan, ranks: Ranking) -> str | None:
    """The best standing of the configurations that were shown to beat the default, else the default."""
    if ranks.leader is None:
        return None
    shown = {h.configuration for h in plan.hypotheses if h.status is Status.SUPPORTED}
    return next((s.configuration for s in ranks.standings if s.configuration in shown), plan.claim.reference)


def next_work(plan: Plan, task: Task, history: History, n: int, search: Proposer) -> list[Proposal]:
    """At most `n` proposals, most wanted first. Fewer: there is nothing useful to run just now."""
    if n < 1 or plan.spent is not None or plan.phase is Phase.DONE:
        return []
    work: list[Proposal] = []
    if plan.search_closed is None:
        room = n_search_trials(task) - len(history.search)
        work = DefaultFirst(task).ask(history, min(n, room)) or _search_work(plan, task, history, n, room, search)
    n_new = sum(1 for proposal in work if proposal.purpose is Purpose.SEARCH)
    is_searched = plan.search_closed is not None or len(history.search) + n_new >= n_search_trials(task)
    if is_searched and task.search.confirm:
        work.extend(confirming_work(task, history, plan.chosen, plan.claim, n - len(work)))
    return work[:n]


def _search_work(plan: Plan, task: Task, history: History, n: int, room: int, search: Proposer) -> list[Proposal]:
    """What is missing of measured configurations, new ones, and what will be missing of those that are under way."""
    work = replicates.due_replicates(task, history, n)
    n_wanted = min(n - len(work), room)
    new = [_labelled(p, plan) for p in search.ask(history, n_wanted)] if n_wanted > 0 else []
    work.extend(new)
    return [*work, *replicates.early_replicates(task, history, n - len(work))]


def _labelled(proposal: Proposal, plan: Plan) -> Proposal:
    """With the claim that it is evidence for, where that is open already."""
    about = plan.about(proposal.configuration) if proposal.purpose is Purpose.REPLICATE else None
    return proposal if about is None else replace(proposal, hypothesis=about.hypothesis_id)


def n_search_trials(task: Task) -> int:
    """Distinct configurations that the search may try: the budget, or the whole space where that is smaller.

    Where a model may leave the space, or the code may change, the space is no bound.
    """
    n_points = None if may_leave(task) or task.code is not None else size(task)
    return task.budgets.trials if n_points is None else min(task.budgets.trials, n_points)


def n_open(task: Task, history: History) -> int:
    """Configurations that the search may still try beside those that the task lists."""
    return max(n_search_trials(task) - len(history.search) - n_untried(task, history), 0)


def search_has_ended(task: Task, history: History) -> bool:
    """Whether nothing is under way that the choice has to wait for."""
    return all(trial.is_ended for trial in history.search) and not replicates.in_flight(task, history)


def _search_closes(task: Task, history: History, spend: Spend, best: Standing | None) -> str | None:
    if best is not None and reaches(best.mean, task.objective):
        who = next(trial.trial_id for trial in history.search if trial.configuration == best.configuration)
        return f"the target {task.objective.target:g} was reached by {who}"
    if len(history.search) >= n_search_trials(task) and replicates.are_complete(task, history):
        is_whole = n_search_trials(task) < task.budgets.trials
        return "every configuration of the space was tried" if is_whole else "all search trials have ended"
    if spend.exhausted is not None and replicates.are_complete(task, history):
        return spend.exhausted
    return reserve_reached(task, history, spend)


def _phase(plan: Plan, task: Task, history: History) -> Phase:
    if plan.spent is not None:
        return (
            Phase.DONE
            if not history.wanted_in_flight
            else (Phase.CONFIRM if search_has_ended(task, history) else Phase.SEARCH)
        )
    if plan.search_closed is None or not search_has_ended(task, _without_new(history)):
        return Phase.SEARCH
    if plan.chosen is None or not task.search.confirm:
        return Phase.DONE if not history.wanted_in_flight else Phase.SEARCH
    if not is_confirmed(task, history, arms(task, history, plan.chosen), plan.claim):
        return Phase.CONFIRM
    if not HeldOutLedger.of(task, history).is_complete:
        return Phase.HELD_OUT
    return Phase.DONE if not history.wanted_in_flight else Phase.CONFIRM


def _without_new(history: History) -> History:
    """A search proposal that was never submitted does not hold up a closed search; it is withdrawn."""
    return replace(history, search=tuple(t for t in history.search if not t.is_new))


def unwanted(plan: Plan, task: Task, history: History) -> Sequence[TrialView]:
    """Ready proposals that the plan no longer wants: to be withdrawn, not run. What has begun goes on to its end."""
    if plan.spent is not None or plan.phase is Phase.DONE:
        return history.ready
    if plan.search_closed is None:
        return ()
    sides = arms(task, history, plan.chosen)
    seeds = fresh_seeds(task, history, sides, plan.claim)
    wanted = {(side.configuration, seed) for side in sides for seed in seeds}
    wanted |= parent_runs(task, history, plan.chosen, seeds)
    return [
        trial
        for trial in history.ready
        if (trial.purpose is Purpose.SEARCH and trial.is_new)
        or (trial.purpose is Purpose.REPLICATE and (trial.configuration, trial.seed) not in wanted and trial.is_new)
    ]


def _what_changed(old: Plan, new: Plan, history: History) -> str:
    said = []
    if new.leader != old.leader and new.leader is not None:
        before = "" if old.leader_value is None else f" (before: {old.leader_value:.6g})"
        said.append(f"{_first_trial(history, new.leader)} leads with {new.leader_value:.6g}{before}")
    if new.search_closed and not old.search_closed:
        said.append(f"the search is closed: {new.search_closed}")
    if new.chosen != old.chosen and new.chosen is not None:
        over = f", {new.chosen_over}" if new.chosen_over else ""
        said.append(f"the configuration of {_first_trial(history, new.chosen)} is chosen to be confirmed{over}")
    if new.spent and not old.spent:
        said.append(f"nothing more is launched: {new.spent}")
    said.extend(_about_claims(old, new))
    if new.phase is not old.phase:
        said.append(f"from {old.phase} to {new.phase}")
    return "; ".join(said) or "values changed"


def _about_claims(old: Plan, new: Plan) -> list[str]:
    before = {claim.hypothesis_id: claim for claim in old.hypotheses}
    said = []
    for claim in new.hypotheses:
        known = before.get(claim.hypothesis_id)
        if known is None:
            said.append(f"{claim.hypothesis_id} is opened: {claim.statement} (error share {claim.alpha:.2g})")
        elif claim.status is not known.status:
            said.append(f"{claim.hypothesis_id} is {claim.status}: {claim.note}")
        elif claim.n_pairs != known.n_pairs:
            said.append(f"{claim.hypothesis_id}: evidence {claim.e_value:.3g} after {claim.n_pairs} pairs")
    return said


def _first_trial(history: History, configuration: str) -> str:
    return next((t.trial_id for t in history.search if t.configuration == configuration), configuration)
