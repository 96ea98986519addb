"""The ledger of the held-out metric: how many looks there are, which were used, and what may still be looked at. Pure.

A look is spent when its trial is proposed for launch, whether it gives a value or not. The store writes the line
before the job is submitted; whoever asks for one more than the task allows is refused here.
"""

from __future__ import annotations

from dataclasses import dataclass

from agent.planner.history import History
from agent.store.views import TrialView
from agent.task import Task


def n_looks(task: Task) -> int:
    """That the task allows; none where nothing is confirmed, since a look would have no verdict to stand beside."""
    return task.held_out.looks if task.held_out is not None and task.search.confirm else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOutLedger:
    metric: str | None
    """None: the task has no held-out metric, and no look is allowed."""
    n_allowed: int
    looks: tuple[TrialView, ...]
    """In the order of their numbers; ready ones count, so that two at once can not both be the last."""

    @classmethod
    def of(cls, task: Task, history: History) -> HeldOutLedger:
        held_out = task.held_out
        return cls(
            metric=held_out.metric if held_out is not None else None,
            n_allowed=n_looks(task),
            looks=history.held_out,
        )

    @property
    def n_used(self) -> int:
        return min(len(self.looks), self.n_allowed)

    @property
    def n_left(self) -> int:
        return max(self.n_allowed - len(self.looks), 0)

    @property
    def is_complete(self) -> bool:
        """Every look that is allowed was taken and has ended."""
        return self.n_left == 0 and all(trial.is_ended for trial in self.looks)

    def objection(self, trial: TrialView) -> str | None:
        """Why this look may not be launched, in words; None: it may. It does not matter who proposed it."""
        if self.metric is None:
            return "the task has no held_out metric: nothing may be looked at"
        if self.n_allowed == 0:
            return f"{self.metric!r} is not looked at: search.confirm is false"
        before = sum(1 for look in self.looks if look.number < trial.number)
        if before >= self.n_allowed:
            return f"held_out.looks: {before} of {self.n_allowed} looks at {self.metric!r} are used"
        return None

    @property
    def words(self) -> str:
        if self.metric is None:
            return "no held-out metric"
        if self.n_allowed == 0:
            return f"{self.metric} is not looked at: search.confirm is false"
        noun = "look" if self.n_allowed == 1 else "looks"
        return f"{self.n_used} of {self.n_allowed} {noun} at {self.metric} used"
