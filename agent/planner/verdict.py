"""The answer of a session, by code: the comparison on fresh seeds, the verdict, the estimates. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from agent.planner.claims import compared, final_pairs
from agent.planner.confirming import arms, fresh_seeds
from agent.planner.history import History
from agent.planner.pairing import Paired
from agent.planner.parentage import over_parent, parentage
from agent.planner.plan import Plan
from agent.planner.proposers.replicator import Arm
from agent.planner.ranking import ranking
from agent.planner.seeds import is_fresh
from agent.planner.standings import values_so_far
from agent.planner.statistics import (
    Comparison,
    Corrected,
    SequentialComparison,
    Verdict,
    corrected,
    mean_interval,
    verdict_on_improvement,
)
from agent.planner.verdict_text import sentence
from agent.store.views import CodeFound, FinalResult, Interval, TrialState
from agent.task import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What was found, before it is put into words."""

    sides: tuple[Arm, ...]
    """The default; then the chosen configuration, where it is another one."""
    pairs: Paired
    sequential: SequentialComparison | None
    """None: there is no second side, or the task wants nothing confirmed."""
    comparison: Comparison
    verdict: Verdict
    by_side: tuple[tuple[float, ...], ...]
    """Values on fresh seeds, in the order of `sides`."""
    estimate: Corrected | None
    held_out: tuple[float, ...]
    code: CodeFound | None
    """The chosen one's, where it was edited."""

    @property
    def best_mean(self) -> Interval | None:
        return mean_interval(self.by_side[-1])


def conclude(plan: Plan, task: Task, history: History) -> FinalResult | None:
    """The result on what was measured; None when no search trial gave a value.

    A session that ended before its choice is concluded on what led then.
    """
    found = findings(plan, task, history)
    if found is None:
        return None
    sides, sequential = found.sides, found.sequential
    held = found.held_out
    return FinalResult(
        best=dict(sides[-1].params),
        default=dict(sides[0].params),
        best_configuration=sides[-1].configuration,
        default_configuration=sides[0].configuration,
        best_mean=found.best_mean,
        default_mean=mean_interval(found.by_side[0]),
        difference=sequential.interval if sequential is not None else None,
        comparison=found.comparison.value,
        verdict=found.verdict.value,
        held_out_value=sum(held) / len(held) if held else None,
        held_out_looks=len(history.held_out),
        sentence=sentence(plan, task, history, found),
        n_pairs=sequential.n if sequential is not None else 0,
        evidence=sequential.e_better if sequential is not None else None,
        evidence_needed=1 / plan.claim.alpha if task.search.confirm else None,
        error_budget=plan.error_budget,
        n_claims=len(plan.hypotheses) - 1,
        estimate=found.estimate.interval if found.estimate is not None else None,
        basis=found.estimate.basis.value if found.estimate is not None else None,
        code=found.code,
    )


def findings(plan: Plan, task: Task, history: History) -> Findings | None:
    """None when no search trial gave a value."""
    leader = ranking(task, history).leader
    if leader is None:
        return None
    chosen = plan.chosen or leader.configuration
    sides = arms(task, history, chosen)
    is_compared = len(sides) == 2 and task.search.confirm
    pairs = final_pairs(task, history, chosen, is_over=True) if is_compared else Paired.nothing()
    sequential = compared(plan.claim, task, pairs) if is_compared else None
    comparison = sequential.comparison if sequential is not None else _without_pairs(task, sides)
    by_side = tuple(_fresh_values(task, history, side.configuration) for side in sides)
    return Findings(
        sides=sides,
        pairs=pairs,
        sequential=sequential,
        comparison=comparison,
        verdict=verdict_on_improvement(comparison),
        by_side=by_side,
        estimate=corrected(values_so_far(task, history), chosen, direction=task.objective.direction, fresh=by_side[-1]),
        held_out=tuple(t.value for t in history.held_out if t.state is TrialState.MEASURED and t.value is not None),
        code=_code_found(plan, task, history, sides),
    )


def _code_found(plan: Plan, task: Task, history: History, sides: tuple[Arm, ...]) -> CodeFound | None:
    found = parentage(task, history, sides[-1].configuration)
    if found is None:
        return None
    seeds = fresh_seeds(task, history, sides, plan.claim)
    return CodeFound(
        trial_id=found.first.trial_id,
        state=found.edited,
        parent=None if found.parent is None else found.parent.trial_id,
        over_parent=over_parent(task, history, found, seeds),
        chosen_over=plan.chosen_over if plan.chosen == found.first.configuration else "",
    )


def _without_pairs(task: Task, sides: tuple[Arm, ...]) -> Comparison:
    """Where the default itself led there is nothing to tell apart; else nothing was compared, so nothing is said."""
    return Comparison.INDISTINGUISHABLE if len(sides) == 1 else Comparison.INVALID


def _fresh_values(task: Task, history: History, configuration: str) -> tuple[float, ...]:
    """In the order of the seeds."""
    return tuple(
        trial.value
        for (name, seed), trial in sorted(history.replicates.items())
        if name == configuration
        and is_fresh(task, seed)
        and trial.state is TrialState.MEASURED
        and trial.value is not None
    )
