"""The sentences that a session ends with: what was found, how sure it is, what was corrected. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.planner.edited import Refusal
from agent.planner.held_out import HeldOutLedger
from agent.planner.history import History
from agent.planner.hypothesis import Status
from agent.planner.objective import gain
from agent.planner.plan import NOT_CONFIRMED, Plan
from agent.planner.reach import beyond
from agent.planner.statistics import Basis, Comparison, Corrected, Verdict
from agent.store.views import Interval, TrialState
from agent.task import Task

if TYPE_CHECKING:
    from agent.planner.verdict import Findings

_BASIS = {
    Basis.FRESH: "on fresh seeds that had no part in the choice, so it needs no correction",
    Basis.SHRUNK: "corrected for the luck of having been chosen",
    Basis.AS_MEASURED: "not corrected for the luck of having been chosen: too little was repeated",
}


def sentence(plan: Plan, task: Task, history: History, found: Findings) -> str:
    """Everything that a person must know of the result, most important first."""
    said = [_claim(task, history, found), _refused(history, found), _outside(task, found), _how_sure(plan, found)]
    said.append(_estimate(task, found))
    if all(len(values) > 1 and len(set(values)) == 1 for values in found.by_side):
        said.append("All fresh seeds gave the same value: does the script use its seed?")
    said += [_code(found), _target(task, found)]
    said.append(_left_out(found))
    said.append(_on_the_way(plan, found))
    if found.held_out:
        mean = sum(found.held_out) / len(found.held_out)
        said.append(f"Held out: {HeldOutLedger.of(task, history).metric} {mean:.4g}.")
    return " ".join(text for text in said if text)


def _claim(task: Task, history: History, found: Findings) -> str:
    metric, verdict = task.objective.metric, found.verdict
    n_search = sum(1 for t in history.search if t.state is TrialState.MEASURED)
    if len(found.sides) == 1:
        return (
            f"The default was not beaten: of {n_search} configurations measured, none had a better {metric} "
            f"in the search ({verdict})."
        )
    if not task.search.confirm:
        return (
            f"The best of {n_search} configurations measured on {metric} was not compared with the default on fresh "
            f"seeds: {NOT_CONFIRMED}."
        )
    if found.comparison is Comparison.INVALID:
        return f"The best configuration could not be compared with the default: too few valid pairs ({verdict})."
    return f"{_relation(task, found.comparison)} on {metric}: {_difference(found)} ({verdict})."


def _outside(task: Task, found: Findings) -> str:
    """Said of a winner, since nobody may take it for a point of the space that was declared."""
    outside = beyond(found.sides[-1].params, task)
    return f"It lies beyond the declared space: {'; '.join(outside)}." if outside else ""


def _refused(history: History, found: Findings) -> str:
    """Why the values of edited code do not count, where that left nothing to compare."""
    if found.code is None or found.comparison is not Comparison.INVALID:
        return ""
    own = [t for t in history.trials if t.configuration == found.sides[-1].configuration]
    refused = [t for t in own if t.exit_reason in set(Refusal)]
    return f"Its values do not count: {refused[0].note}." if refused else ""


def _code(found: Findings) -> str:
    """Of edited code: how much it is, what its last change brings by itself, and whom it was chosen over."""
    code = found.code
    if code is None:
        return ""
    said = [f"Its code is that of {code.trial_id}: {code.state.size}"]
    over = code.over_parent
    made_from = "the base code" if code.parent is None else f"the code of {code.parent}, which it was made from"
    if over is not None:
        said.append(
            f"against {made_from}, {over.estimate:+.4g} [{over.low:+.4g}, {over.high:+.4g}], {_percent(over)} interval "
            f"over {_count(over.n, 'paired fresh seed')}: no claim, and nothing of the error budget"
        )
    elif found.sequential is not None and code.parent is not None:
        said.append(f"it could not be held against {made_from}")
    return f"{'; '.join([*said, *([code.chosen_over] if code.chosen_over else [])])}."


def _percent(interval: Interval) -> str:
    return f"{100 * interval.confidence:.3g} %"


def _relation(task: Task, comparison: Comparison) -> str:
    by = "" if task.objective.min_effect == 0 else f" by more than {task.objective.min_effect:g}"
    match comparison:
        case Comparison.BETTER:
            return f"The best configuration beats the default{by}"
        case Comparison.WORSE:
            return f"The best configuration of the search is worse than the default{by}"
        case _:
            return f"The best configuration can not be told from the default{by}"


def _difference(found: Findings) -> str:
    assert found.sequential is not None
    interval, n = found.sequential.interval, found.sequential.n
    pairs = f"over {n} paired fresh seeds"
    if interval is None:
        mean = sum(a - b for a, b in found.pairs.values) / n
        return f"best minus default {mean:+.4g} {pairs}, too few for an interval"
    percent = f"{_percent(interval)} interval"
    where = f"best minus default {interval.estimate:+.4g} [{interval.low:+.4g}, {interval.high:+.4g}]"
    return f"{where}, {percent} {pairs}"


def _how_sure(plan: Plan, found: Findings) -> str:
    """Said of claims that were accepted or not, by betting; a side that was never compared needs no sentence."""
    if found.sequential is None or found.comparison is Comparison.INVALID:
        return ""
    needed = 1 / plan.claim.alpha
    evidence = found.sequential.e_worse if found.verdict is Verdict.REFUTED else found.sequential.e_better
    looks = f"valid at each of its {found.sequential.n} looks"
    held = f"Evidence {evidence:.3g} where {needed:.4g} decides, {looks}"
    if found.verdict is Verdict.SUPPORTED:
        n = len(plan.hypotheses)
        claims = "this claim" if n == 1 else f"any of its {n} claims"
        return (
            f"{held}; the chance that the session accepts {claims} falsely is at most {100 * plan.error_budget:.3g} %."
        )
    return f"{held}."


def _estimate(task: Task, found: Findings) -> str:
    if found.estimate is None:
        return ""
    name = "The best configuration" if len(found.sides) == 2 else "The default"
    metric = task.objective.metric
    if found.best_mean is not None:
        return f"{name} has a mean {metric} of {_shown(found.best_mean)} over {found.best_mean.n} fresh seeds."
    return f"{name} is put at {metric} {_corrected(found.estimate)}."


def _corrected(estimate: Corrected) -> str:
    return f"{_shown(estimate.interval)} over {_count(estimate.interval.n, 'value')}, {_BASIS[estimate.basis]}"


def _target(task: Task, found: Findings) -> str:
    target, mean = task.objective.target, found.best_mean
    if target is None or mean is None:
        return ""
    has = gain(mean.estimate, target, task.objective.direction) >= 0
    return f"The target {target:g} was {'reached' if has else 'not reached'} by that mean."


def _left_out(found: Findings) -> str:
    pairs = found.pairs
    said = []
    if pairs.n_broken:
        said.append(f"{_count(pairs.n_broken, 'pair')} left out since a side gave no value")
    for reason, n in sorted(pairs.left_out.items()):
        said.append(f"{_count(n, 'pair')} left out as not comparable ({reason})")
    return f"{'; '.join(said)}." if said else ""


def _on_the_way(plan: Plan, found: Findings) -> str:
    """Claims that were accepted while the search went on, where they are not the one of the end."""
    shown = [
        claim
        for claim in plan.hypotheses[1:]
        if claim.status is Status.SUPPORTED
        and not (found.verdict is Verdict.SUPPORTED and claim.configuration == found.sides[-1].configuration)
    ]
    if not shown:
        return ""
    told = "; ".join(f"{claim.statement} ({claim.hypothesis_id}, {claim.n_pairs} pairs)" for claim in shown)
    return f"Shown on the way, within the same error budget: {told}."


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def _shown(interval: Interval) -> str:
    return f"{interval.estimate:.4g} [{interval.low:.4g}, {interval.high:.4g}]"
