"""Which pairs a claim is judged by: the same seed on both sides, in one fixed order, whenever one looks. Pure.

Evidence that is valid at every look needs an order that no look can change. So pairs are taken in the order of the
seeds, and while one is still to come the later ones wait for it. A pair that is broken or not comparable is left out.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from agent.planner.comparable import why_not_comparable
from agent.planner.history import History
from agent.planner.seeds import is_racing, racing
from agent.store.views import TrialState, TrialView
from agent.task import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Paired:
    pairs: tuple[tuple[TrialView, TrialView], ...]
    """First and second side, both measured and comparable, in the order of the seeds."""
    n_broken: int
    """Seeds on which a side gave no value."""
    left_out: dict[str, int]
    """Pairs that are not comparable, by reason."""

    @classmethod
    def nothing(cls) -> Paired:
        return cls(pairs=(), n_broken=0, left_out={})

    @property
    def values(self) -> list[tuple[float, float]]:
        return [(a.value, b.value) for a, b in self.pairs if a.value is not None and b.value is not None]

    @property
    def trial_ids(self) -> tuple[str, ...]:
        return tuple(trial.trial_id for pair in self.pairs for trial in pair)


def paired(
    task: Task, history: History, first: str, second: str, seeds: Iterable[int], *, is_over: bool = False
) -> Paired:
    """Pairs of two configurations up to the first seed that is still to come.

    Args:
        is_over: nothing more will be run; a seed that was never run on both sides is passed over.
    """
    pairs: list[tuple[TrialView, TrialView]] = []
    left_out: Counter[str] = Counter()
    n_broken = 0
    for seed in seeds:
        one, other = history.replicates.get((first, seed)), history.replicates.get((second, seed))
        if one is None or other is None or not one.is_ended or not other.is_ended:
            if is_over:
                continue
            break
        if not (_is_measured(one) and _is_measured(other)):
            n_broken += 1
            continue
        reason = why_not_comparable(one, other, task)
        if reason is None:
            pairs.append((one, other))
        else:
            left_out[reason] += 1
    return Paired(pairs=tuple(pairs), n_broken=n_broken, left_out=dict(left_out))


def raced_seeds(task: Task, history: History, configuration: str) -> list[int]:
    """Racing seeds from the first one to the last one that this configuration has run on, in order."""
    own = [seed for name, seed in history.replicates if name == configuration and is_racing(task, seed)]
    return list(itertools.takewhile(lambda seed: seed <= max(own), racing(task))) if own else []


def is_broken(task: Task, history: History, configurations: tuple[str, ...], seed: int) -> bool:
    """Whether a seed can give no pair any more: a side gave no value, or the two may not be compared."""
    runs = [run for name in configurations if (run := history.replicates.get((name, seed))) is not None]
    if any(run.state is TrialState.INVALID for run in runs):
        return True
    if len(runs) < 2 or not all(_is_measured(run) for run in runs):
        return False
    return why_not_comparable(runs[0], runs[1], task) is not None


def _is_measured(trial: TrialView) -> bool:
    return trial.state is TrialState.MEASURED and trial.value is not None
