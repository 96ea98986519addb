"""Known configurations again, with fresh seeds: the same seeds for every arm, so that they pair up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent.planner.history import History, Proposal
from agent.store.views import ParamValue, Purpose, TrialState
from agent.task import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One side of a comparison."""

    name: str
    """`best` or `default`."""
    params: dict[str, ParamValue]
    configuration: str


def fresh_seeds(task: Task, history: History, arms: Sequence[Arm]) -> list[int]:
    """The seeds that count: the first `seeds.fresh` that failed on no arm.

    A seed on which one arm gave no value is dropped for all (the pair is broken) and replaced by the next one; at
    most twice as many seeds as planned are ever tried, so a configuration that always fails ends too.
    """
    planned = task.seeds.fresh
    first = task.seeds.first_fresh
    tried = [seed for seed in range(first, first + 2 * planned + 1) if seed != task.seeds.search]
    usable = []
    for seed in tried[: 2 * planned]:
        runs = (history.replicates.get((arm.configuration, seed)) for arm in arms)
        if not any(run is not None and run.state is TrialState.INVALID for run in runs):
            usable.append(seed)
    return usable[:planned]


class Replicator:
    """Asks for what is missing on one arm so that all arms have the same fresh seeds."""

    def __init__(self, task: Task, arm: Arm, arms: Sequence[Arm]) -> None:
        self._task = task
        self._arm = arm
        self._arms = arms

    @property
    def name(self) -> str:
        return "replicator"

    def tell(self, history: History) -> None:
        """The history says it all."""

    def ask(self, history: History, n: int) -> list[Proposal]:
        arm = self._arm
        missing = [
            seed
            for seed in fresh_seeds(self._task, history, self._arms)
            if (arm.configuration, seed) not in history.replicates
        ]
        return [
            Proposal(
                params=arm.params,
                configuration=arm.configuration,
                seed=seed,
                purpose=Purpose.REPLICATE,
                suggested_by="replicator",
                why=f"fresh seed {seed} for the {arm.name} configuration: its search value is biased by the choice",
            )
            for seed in missing[: max(n, 0)]
        ]
