"""Two configurations held against each other on request, over the replicates that both have. Pure.

A look of its own, outside of the error budget of a session: it is valid however often it is repeated, but who holds
many configurations against each other must expect a false claim in one of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from agent.planner.comparable import comparable_pairs
from agent.planner.statistics import Comparison, SequentialComparison, compare_sequentially
from agent.store.views import Purpose, TrialView
from agent.task import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """The first configuration held against the second."""

    comparison: Comparison
    reason: str
    """In words, with the evidence."""
    n_pairs: int
    seeds: tuple[int, ...]
    """Of the pairs, in order."""
    left_out: dict[str, int]
    """Pairs that are not comparable, by reason."""
    result: SequentialComparison | None
    """None: the tasks differ, so that nothing was computed."""

    def words(self, first: str, second: str) -> str:
        """The same in a sentence, for two trials of these names."""
        if self.result is None:
            return f"Comparison: invalid. {self.reason}."
        said = f"The configuration of {first} against that of {second} over {self.n_pairs} paired seeds: "
        left = "".join(f"; {n} left out: {reason}" for reason, n in sorted(self.left_out.items()))
        found = self.result.interval
        where = f" Difference {found.estimate:+.4g} [{found.low:+.4g}, {found.high:+.4g}]." if found else ""
        return f"{said}{self.comparison.value} ({self.reason}){left}.{where}"


def hold_against(
    first: Iterable[TrialView], second: Iterable[TrialView], task: Task, other_task: Task | None = None
) -> Held:
    """Compare the replicates of two configurations on their common seeds.

    Values of the search are left out: they are biased by having been chosen. `other_task` is the second's, where it
    is of another session.
    """
    differs = why_tasks_differ(task, other_task or task)
    if differs is not None:
        return Held(comparison=Comparison.INVALID, reason=differs, n_pairs=0, seeds=(), left_out={}, result=None)
    found = comparable_pairs(_replicates(first), _replicates(second), task)
    values = found.values
    result = compare_sequentially(
        values,
        direction=task.objective.direction,
        alpha=task.trust.error_budget,
        min_effect=task.objective.min_effect,
        max_pairs=max(task.seeds.max_pairs, len(values)),
    )
    return Held(
        comparison=result.comparison,
        reason=result.reason,
        n_pairs=len(values),
        seeds=tuple(one.seed for one, _ in found.pairs),
        left_out=dict(found.left_out),
        result=result,
    )


def _replicates(side: Iterable[TrialView]) -> list[TrialView]:
    return [trial for trial in side if trial.purpose is Purpose.REPLICATE]


def why_tasks_differ(one: Task, other: Task) -> str | None:
    """Why values of two tasks say nothing about each other, in words; None: they measure the same."""
    pairs = (
        ("objective.metric", one.objective.metric, other.objective.metric),
        ("objective.direction", one.objective.direction.value, other.objective.direction.value),
        ("objective.read", one.objective.read, other.objective.read),
        ("fidelity", _fidelity(one), _fidelity(other)),
        ("job.command", one.job.command, other.job.command),
        ("job.parameters", one.job.parameters, other.job.parameters),
    )
    for name, first, second in pairs:
        if first != second:
            return f"the tasks measure different things: {name} is {first!r} in one and {second!r} in the other"
    return None


def _fidelity(task: Task) -> str | None:
    return None if task.fidelity is None else f"{task.fidelity.parameter}={task.fidelity.value}"
