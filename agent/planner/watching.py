"""The regression watch: one night's trials held against those of a reference night. Pure.

Pairs are trials of the same configuration and seed in both nights; the code may differ, since what it did is the
question. A change is shown by the exact test of flipped signs, once a night, on both sides, from the night's share of
its error budget; the interval stands beside it whatever the test says.

The reference is a night that a person accepted, else the first that can be compared: against the night before a slow
loss would never be seen, and against a mean of several nights the signs would not be fair coins.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from agent.planner.comparable import Circumstance, comparable_pairs, why_not_comparable
from agent.planner.compared import why_tasks_differ
from agent.planner.statistics import difference_interval
from agent.planner.statistics.sign_flips import flip_p_values
from agent.store.views import Interval, TrialView
from agent.sweeps.sweep import Watch
from agent.sweeps.views import Change, WatchResult
from agent.task import Direction, Task

METRIC, SPEED, MEMORY = "metric", "speed", "memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One cell in one night."""

    night_id: str
    task: Task
    trials: Sequence[TrialView]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pairs:
    what: str
    gains: tuple[float, ...]
    """Tonight minus the reference, positive is better; logarithms of ratios for speed and memory."""
    margin: float
    """Changes up to this size are none."""
    reason: str
    """Why there are none; empty where there are."""


def watched(cell: str, tonight: Side, reference: Side | None, watch: Watch, *, n_cells: int) -> list[WatchResult]:
    """What the watch says of one cell: one result for each thing that it looks at.

    Args:
        n_cells: cells of the night; the error budget is shared by all that is watched in them.
    """
    wanted = [what for what, is_on in ((METRIC, watch.metric), (SPEED, watch.speed), (MEMORY, watch.memory)) if is_on]
    if not wanted:
        return []
    tonight, reference = _apart(tonight, reference)
    alpha = watch.error_budget / (n_cells * len(wanted))
    if reference is None:
        return [
            _unknown(cell, what, None, "no earlier night has values of this cell to compare with") for what in wanted
        ]
    differs = why_tasks_differ(reference.task, tonight.task)
    if differs is not None:
        return [_unknown(cell, what, reference.night_id, differs) for what in wanted]
    return [_judged(cell, _pairs(what, tonight, reference, watch), reference, tonight.task, alpha) for what in wanted]


def _apart(tonight: Side, reference: Side | None) -> tuple[Side, Side | None]:
    """Without looks at held-out data, which are of another metric, and without trials that both nights have."""
    common = (
        set() if reference is None else {t.trial_id for t in tonight.trials} & {t.trial_id for t in reference.trials}
    )

    def kept(side: Side) -> Side:
        trials = [t for t in side.trials if t.is_at_search_fidelity and t.trial_id not in common]
        return replace(side, trials=trials)

    return kept(tonight), None if reference is None else kept(reference)


def _pairs(what: str, tonight: Side, reference: Side, watch: Watch) -> _Pairs:
    task = tonight.task
    if what == METRIC:
        found = comparable_pairs(tonight.trials, reference.trials, task, by=_key, may_differ=(Circumstance.CODE,))
        sign = 1.0 if task.objective.direction is Direction.MAXIMIZE else -1.0
        gains = tuple(sign * ((a.value or 0.0) - (b.value or 0.0)) for a, b in found.pairs)
        left = "; ".join(f"{n} left out: {why}" for why, n in found.left_out.items())
        return _Pairs(what=what, gains=gains, margin=task.objective.min_effect, reason=left)
    read: Callable[[TrialView], float | None] = _seconds if what == SPEED else _memory
    by_key = {_key(trial): trial for trial in reference.trials if read(trial)}
    gains = tuple(
        math.log(read(by_key[_key(trial)]) or 1.0) - math.log(read(trial) or 1.0)
        for trial in sorted(tonight.trials, key=_key)
        if read(trial)
        and _key(trial) in by_key
        and why_not_comparable(trial, by_key[_key(trial)], task, may_differ=(Circumstance.CODE,)) is None
    )
    limit = watch.slower_by if what == SPEED else watch.larger_by
    return _Pairs(what=what, gains=gains, margin=math.log1p(limit), reason="")


def _key(trial: TrialView) -> tuple[str | int, ...]:
    return trial.configuration, trial.seed


def _seconds(trial: TrialView) -> float | None:
    return trial.facts.run_seconds


def _memory(trial: TrialView) -> float | None:
    return trial.facts.peak_memory_mb


def _judged(cell: str, pairs: _Pairs, reference: Side, task: Task, alpha: float) -> WatchResult:
    n = len(pairs.gains)
    if n == 0:
        reason = pairs.reason or "no trial of the same configuration and seed was measured in both nights"
        return _unknown(cell, pairs.what, reference.night_id, reason)
    gains = np.asarray(pairs.gains)
    if not np.any(gains):
        change, p_value = Change.UNCHANGED, 1.0
        reason = f"the same to the last digit in {n} pairs"
    else:
        n_telling = int(np.count_nonzero(gains - pairs.margin))
        n_needed = 1 + math.ceil(math.log2(1.0 / alpha))
        p_better = float(flip_p_values(gains - pairs.margin))
        p_worse = float(flip_p_values(-gains - pairs.margin))
        p_value = min(1.0, 2.0 * min(p_better, p_worse))
        if p_value <= alpha:
            change = Change.BETTER if p_better < p_worse else Change.WORSE
            reason = f"{_size(pairs, task)} in {n} pairs (p {p_value:.2g}, needed {alpha:.2g})"
        elif n_telling < n_needed:
            change = Change.UNKNOWN
            which = f"{n} pairs" if n_telling == n else f"{n} pairs, {n - n_telling} of them equal,"
            reason = f"{which} can not show a change; {n_needed} would (more replicates, or more configurations)"
        else:
            change = Change.UNCHANGED
            reason = f"no change was shown by {n} pairs ({_size(pairs, task)}, p {p_value:.2g})"
    return WatchResult(
        cell=cell,
        what=pairs.what,
        change=change,
        reference=reference.night_id,
        n_pairs=n,
        interval=_interval(pairs, task),
        p_value=p_value,
        alpha=alpha,
        reason=reason,
    )


def _size(pairs: _Pairs, task: Task) -> str:
    middle = statistics.fmean(pairs.gains)
    if pairs.what == METRIC:
        sign = 1.0 if task.objective.direction is Direction.MAXIMIZE else -1.0
        return f"{task.objective.metric} {sign * middle:+.4g}"
    return f"{'time' if pairs.what == SPEED else 'memory'} {100 * math.expm1(-middle):+.1f} %"


def _interval(pairs: _Pairs, task: Task) -> Interval | None:
    """Tonight minus the reference, in the metric's units, or as a part of the reference."""
    found = difference_interval(pairs.gains)
    if found is None:
        return None
    if pairs.what == METRIC:
        if task.objective.direction is Direction.MAXIMIZE:
            return found
        return replace(found, estimate=-found.estimate, low=-found.high, high=-found.low)
    ends = (math.expm1(-found.estimate), math.expm1(-found.high), math.expm1(-found.low))
    return replace(found, estimate=ends[0], low=ends[1], high=ends[2])


def _unknown(cell: str, what: str, reference: str | None, reason: str) -> WatchResult:
    return WatchResult(
        cell=cell,
        what=what,
        change=Change.UNKNOWN,
        reference=reference,
        n_pairs=0,
        interval=None,
        p_value=None,
        alpha=None,
        reason=reason,
    )
