"""Known configurations again, with fresh seeds: the same seeds for every arm, so that they pair up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent.planner.history import History, Proposal
from agent.store.views import CodeState, ParamValue, Purpose, TrialFacts
from agent.task import Task

_WHY = {
    "best": "the best configuration: its search value is biased by the choice",
    "default": "the default configuration: its search value is biased by the choice",
    "parent": "the code that the best was made from: what its last change brings by itself",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One side of a comparison."""

    name: str
    """`best`, `default` or `parent`."""
    params: dict[str, ParamValue]
    configuration: str
    edited: CodeState | None = None
    """The code that it runs; None: the base, or that of a configuration which is known already."""


class Replicator:
    """Asks for what is missing of one arm on the given seeds."""

    def __init__(self, task: Task, arm: Arm, seeds: Sequence[int], hypothesis: str | None) -> None:
        self._task = task
        self._arm = arm
        self._seeds = seeds
        self._hypothesis = hypothesis

    @property
    def name(self) -> str:
        return "replicator"

    def tell(self, history: History) -> None:
        """The history says it all."""

    def ask(self, history: History, n: int) -> list[Proposal]:
        arm = self._arm
        missing = [seed for seed in self._seeds if (arm.configuration, seed) not in history.replicates]
        return [
            Proposal(
                params=arm.params,
                configuration=arm.configuration,
                seed=seed,
                purpose=Purpose.REPLICATE,
                suggested_by="replicator",
                why=f"fresh seed {seed} for {_WHY[arm.name]}",
                hypothesis=self._hypothesis,
                facts=TrialFacts(edited=arm.edited),
            )
            for seed in missing[: max(n, 0)]
        ]
