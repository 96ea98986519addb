"""The answer of a session, by code: intervals, comparison, verdict and the sentence for a person. Pure."""

from __future__ import annotations

from agent.planner.configuration import configuration_id, default_params
from agent.planner.history import History
from agent.planner.objective import gain
from agent.planner.plan import Plan, arms
from agent.planner.proposers.replicator import Arm
from agent.planner.statistics import (
    Comparison,
    Verdict,
    compare,
    mean_interval,
    paired_interval,
    verdict_on_improvement,
)
from agent.store.views import FinalResult, Interval, TrialState
from agent.task import Task


def conclude(plan: Plan, task: Task, history: History) -> FinalResult | None:
    """The result on what was measured; None when no search trial gave a value.

    A session that ended before its choice is concluded on what led then.
    """
    best = history.best(task.objective.direction)
    if best is None:
        return None
    default_values = _by_seed(history, configuration_id(default_params(task)))
    sides = arms(task, history, plan.chosen or plan.leader or best.configuration)
    chosen = sides[-1]
    best_values = _by_seed(history, chosen.configuration)
    difference: Interval | None = None
    comparison = Comparison.INDISTINGUISHABLE
    if len(sides) == 2:
        seeds = sorted(set(best_values) & set(default_values))
        difference = paired_interval([(best_values[s], default_values[s]) for s in seeds])
        comparison = compare(difference, direction=task.objective.direction, n_needed=n_pairs_needed(task))
    verdict = verdict_on_improvement(comparison)
    best_mean = mean_interval(list(best_values.values()))
    held = [t.value for t in history.held_out if t.state is TrialState.MEASURED and t.value is not None]
    held_out_value = sum(held) / len(held) if held else None
    return FinalResult(
        best=dict(chosen.params),
        default=dict(sides[0].params),
        best_configuration=chosen.configuration,
        default_configuration=sides[0].configuration,
        best_mean=best_mean,
        default_mean=mean_interval(list(default_values.values())),
        difference=difference,
        comparison=comparison.value,
        verdict=verdict.value,
        held_out_value=held_out_value,
        held_out_looks=len(history.held_out),
        sentence=_sentence(task, history, sides, best_mean, difference, comparison, verdict, held_out_value),
    )


def n_pairs_needed(task: Task) -> int:
    """Fewer valid pairs than this decide nothing: at least two, and half of what was planned."""
    return max(2, (task.seeds.fresh + 1) // 2)


def _by_seed(history: History, configuration: str) -> dict[int, float]:
    return {
        seed: trial.value
        for (name, seed), trial in history.replicates.items()
        if name == configuration and trial.state is TrialState.MEASURED and trial.value is not None
    }


def _sentence(
    task: Task,
    history: History,
    sides: tuple[Arm, ...],
    best_mean: Interval | None,
    difference: Interval | None,
    comparison: Comparison,
    verdict: Verdict,
    held_out_value: float | None,
) -> str:
    metric = task.objective.metric
    n_search = sum(1 for t in history.search if t.state is TrialState.MEASURED)
    said = [_claim(metric, n_search, sides, difference, comparison, verdict)]
    if best_mean is not None:
        name = "The best configuration" if len(sides) == 2 else "It"
        said.append(f"{name} has a mean {metric} of {_shown(best_mean)} over {best_mean.n} fresh seeds.")
    by_side = [list(_by_seed(history, side.configuration).values()) for side in sides]
    if best_mean is not None and all(len(values) > 1 and len(set(values)) == 1 for values in by_side):
        said.append("All fresh seeds gave the same value: does the script use its seed?")
    if task.objective.target is not None and best_mean is not None:
        has = gain(best_mean.estimate, task.objective.target, task.objective.direction) >= 0
        said.append(f"The target {task.objective.target:g} was {'reached' if has else 'not reached'} by that mean.")
    if task.held_out is not None and held_out_value is not None:
        said.append(f"Held out: {task.held_out.metric} {held_out_value:.4g}.")
    return " ".join(said)


def _claim(
    metric: str,
    n_search: int,
    sides: tuple[Arm, ...],
    difference: Interval | None,
    comparison: Comparison,
    verdict: Verdict,
) -> str:
    if len(sides) == 1:
        return (
            f"The default was not beaten: of {n_search} configurations measured, none had a better {metric} "
            f"in the search ({verdict})."
        )
    if difference is None or comparison is Comparison.INVALID:
        return f"The best configuration could not be compared with the default: too few valid pairs ({verdict})."
    where = f"best minus default {difference.estimate:+.4g} [{difference.low:+.4g}, {difference.high:+.4g}]"
    how = f"{where}, {round(difference.confidence * 100)} % interval over {difference.n} paired fresh seeds"
    match comparison:
        case Comparison.BETTER:
            return f"The best configuration beats the default on {metric}: {how} ({verdict})."
        case Comparison.WORSE:
            return f"The best configuration of the search is worse than the default on {metric}: {how} ({verdict})."
        case Comparison.INDISTINGUISHABLE:
            return f"The best configuration can not be told from the default on {metric}: {how} ({verdict})."


def _shown(interval: Interval) -> str:
    return f"{interval.estimate:.4g} [{interval.low:.4g}, {interval.high:.4g}]"
