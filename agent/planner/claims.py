"""The claims of a session and the rules that judge them, on the way and at the end. Pure.

A challenger's claim is opened when its first racing replicate is proposed, with its share of the error budget, and
judged by the pairs with the default on racing seeds. The session's own claim is judged by pairs on fresh seeds alone.
"""

from __future__ import annotations

import math
from dataclasses import replace

from scipy.special import ndtr

from agent.planner.configuration import configuration_id, default_params
from agent.planner.held_out import n_looks
from agent.planner.history import History
from agent.planner.hypothesis import FINAL, Hypothesis, Prediction, Status
from agent.planner.objective import gain
from agent.planner.pairing import Paired, paired, raced_seeds
from agent.planner.ranking import Ranking
from agent.planner.seeds import all_fresh, is_racing, n_pairs_at_most
from agent.planner.standings import values_so_far
from agent.planner.statistics import (
    Comparison,
    ErrorBudget,
    SequentialComparison,
    compare_sequentially,
    pairs_needed,
    pooled_noise,
    smallest_detectable,
)
from agent.store.views import Purpose, TrialView
from agent.task import Task

NO_DATA = Prediction(probability=0.5, effect=None, made_by="nobody: nothing was known")
_MOST_PLANNED = 50
"""Challengers that the even part of the error budget is split between, at most."""
_UNSURE = (0.01, 0.99)
"""No prediction is surer than this."""
_STATUS = {
    Comparison.BETTER: Status.SUPPORTED,
    Comparison.WORSE: Status.REFUTED,
    Comparison.INDISTINGUISHABLE: Status.INCONCLUSIVE,
    Comparison.INVALID: Status.INCONCLUSIVE,
}


def error_budget(task: Task) -> ErrorBudget:
    """Fixed by the task alone, so by nothing that a session sees."""
    return ErrorBudget(total=task.trust.error_budget, n_planned=max(1, min(task.budgets.trials - 1, _MOST_PLANNED)))


def first_claim(task: Task) -> Hypothesis:
    """The session's own claim, fixed before the first trial."""
    seeds, metric = task.seeds, task.objective.metric
    alpha = error_budget(task).final_share
    n_final = 2 * seeds.fresh + n_looks(task) if task.search.confirm else 0
    return Hypothesis(
        hypothesis_id=FINAL,
        statement=f"the best configuration found beats the default{_by(task)} on {metric}",
        prediction=NO_DATA,
        acceptance=(
            f"pairs with the default on fresh seeds from {seeds.first_fresh} on, {seeds.fresh} at first and "
            f"{n_pairs_at_most(task)} at most; {_rule(task, alpha)}"
            if task.search.confirm
            else "search.confirm is false: no pairs are made, and it is not judged"
        ),
        alpha=alpha,
        reference=configuration_id(default_params(task)),
        configuration=None,
        budget_share=round(n_final / (n_final + task.budgets.trials), 4),
        opened_at=1,
    )


def opened(hypotheses: tuple[Hypothesis, ...], task: Task, history: History, ranks: Ranking) -> tuple[Hypothesis, ...]:
    """With a claim for every configuration that was sent into the race since; in the order of being sent.

    Where every configuration is measured on several seeds none was sent: that is no claim.
    """
    if task.search.replicates > 1:
        return hypotheses
    default = configuration_id(default_params(task))
    known = {h.configuration for h in hypotheses[1:]} | {default}
    found = list(hypotheses)
    for trial in history.trials:
        is_new = trial.purpose is Purpose.REPLICATE and is_racing(task, trial.seed) and trial.configuration not in known
        if is_new:
            known.add(trial.configuration)
            found.append(_challenger(found, task, history, ranks, trial))
    return tuple(found)


def _challenger(before: list[Hypothesis], task: Task, history: History, ranks: Ranking, trial: TrialView) -> Hypothesis:
    order = len(before)
    accepted = [h.opened_at - 1 for h in before[1:] if h.status is Status.SUPPORTED]
    alpha = error_budget(task).share(order, accepted)
    n_pairs = n_pairs_at_most(task)
    first = next((t for t in history.search if t.configuration == trial.configuration), trial)
    return Hypothesis(
        hypothesis_id=f"h{order + 1}",
        statement=f"the configuration of {first.trial_id} beats the default{_by(task)} on {task.objective.metric}",
        prediction=_by_its_arm(first) or predicted(task, history, ranks, trial.configuration, alpha),
        acceptance=(
            f"pairs with the default on racing seeds from {task.seeds.first_racing} on, {n_pairs} at most; "
            f"{_rule(task, alpha)}"
        ),
        alpha=alpha,
        reference=before[0].reference,
        configuration=trial.configuration,
        budget_share=round(min(1.0, 2 * n_pairs / (task.budgets.trials + 2 * n_pairs)), 4),
        opened_at=order + 1,
    )


def _by_its_arm(first: TrialView) -> Prediction | None:
    """What whoever suggested a configuration had predicted, before it had any value; None: nothing."""
    said = first.facts.expected
    if said is None:
        return None
    chance = min(max(said.probability, _UNSURE[0]), _UNSURE[1])
    return Prediction(probability=chance, effect=said.effect, made_by=first.facts.model or first.suggested_by)


def predicted(task: Task, history: History, ranks: Ranking, configuration: str, alpha: float) -> Prediction:
    """The chance that its claim will be supported, from what is believed of it and of the default by now.

    That the true gain exceeds what the pairs can show half of the time, both taken as normal.
    """
    own, default = ranks.of(configuration), ranks.of(configuration_id(default_params(task)))
    if own is None or default is None:
        return NO_DATA
    effect = gain(own.mean, default.mean, task.objective.direction)
    noise = pooled_noise(values_so_far(task, history), task.objective.direction)
    spread = math.hypot(own.sd, default.sd)
    if noise is None or spread == 0:
        return Prediction(probability=0.5, effect=effect, made_by="single values: the noise is not known")
    shown = smallest_detectable(math.sqrt(2) * noise, n_pairs_at_most(task), alpha, power=0.5)
    if shown is None:
        return Prediction(probability=_UNSURE[0], effect=effect, made_by="standing: too few pairs to show anything")
    chance = float(ndtr((effect - task.objective.min_effect - shown) / spread))
    return Prediction(probability=round(min(max(chance, _UNSURE[0]), _UNSURE[1]), 4), effect=effect, made_by="standing")


def judged_on_the_way(claim: Hypothesis, task: Task, history: History, *, is_over: bool) -> Hypothesis:
    """An open challenger's claim after the pairs so far; a closed one as it is."""
    if not claim.is_open or claim.configuration is None:
        return claim
    seeds = raced_seeds(task, history, claim.configuration)
    pairs = paired(task, history, claim.configuration, claim.reference, seeds, is_over=is_over)
    found = compared(claim, task, pairs)
    judged = _judged(claim, pairs, found, is_over=is_over)
    fewest = pairs_needed(1.0, 0.0, claim.alpha)
    if judged.status is Status.INCONCLUSIVE and fewest is not None and found.n < fewest:
        note = f"not judged: {found.n} of the {fewest} pairs without which nothing can be said"
        return replace(judged, status=Status.DROPPED, note=note)
    return judged


def judged_at_the_end(claim: Hypothesis, task: Task, history: History, chosen: str, *, is_over: bool) -> Hypothesis:
    """The session's own claim after the fresh pairs so far; closed only when the session is over."""
    if not claim.is_open:
        return claim
    claim = replace(claim, configuration=chosen)
    if chosen == claim.reference:
        note = "the default itself led: nothing was found that could be better"
        return replace(claim, note=note, status=Status.INCONCLUSIVE) if is_over else replace(claim, note=note)
    pairs = final_pairs(task, history, chosen, is_over=is_over)
    found = _judged(claim, pairs, compared(claim, task, pairs), is_over=is_over)
    return found if is_over else replace(found, status=Status.OPEN)


def final_pairs(task: Task, history: History, chosen: str, *, is_over: bool) -> Paired:
    """Pairs of the chosen configuration and the default on fresh seeds."""
    default = configuration_id(default_params(task))
    return paired(task, history, chosen, default, all_fresh(task), is_over=is_over)


def compared(claim: Hypothesis, task: Task, pairs: Paired) -> SequentialComparison:
    """By the rule of the claim, after these pairs."""
    return compare_sequentially(
        pairs.values,
        direction=task.objective.direction,
        alpha=claim.alpha,
        min_effect=task.objective.min_effect,
        max_pairs=n_pairs_at_most(task),
    )


def _judged(claim: Hypothesis, pairs: Paired, found: SequentialComparison, *, is_over: bool) -> Hypothesis:
    status = _STATUS[found.comparison] if found.is_decided or is_over else Status.OPEN
    if status is Status.INCONCLUSIVE and found.n == 0:
        status = Status.DROPPED
    if found.n == 0 and status is Status.OPEN:
        return claim
    return replace(
        claim,
        status=status,
        evidence=pairs.trial_ids,
        n_pairs=found.n,
        e_value=found.e_better,
        note=found.reason,
    )


def _by(task: Task) -> str:
    return "" if task.objective.min_effect == 0 else f" by more than {task.objective.min_effect:g}"


def _rule(task: Task, alpha: float) -> str:
    return (
        f"supported when the evidence that it is better{_by(task)} ({task.objective.direction}) reaches "
        f"{1 / alpha:.4g}, refuted when the evidence that it is worse does; valid however often it is looked at"
    )
