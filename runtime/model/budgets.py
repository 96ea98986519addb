"""How much device time sessions and projects may use, and have used. Frozen. Pure.

A budget is about device-seconds: devices times the time from the order to start until the attempt is proven gone. What
attempts that have ended used is summed up as they end, for every session and project, so that a budget that comes later
counts what was used before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from .nouns import Job


class BudgetScope(StrEnum):
    """Whose jobs a budget is about."""

    SESSION = "session"
    PROJECT = "project"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The most device time that some jobs may use together, ever."""

    scope: BudgetScope
    name: str
    limit_s: float
    """Device-seconds."""
    is_brought: bool = False
    """By the submissions of its session, which may bring another one later; what a person set is theirs alone."""

    @property
    def key(self) -> str:
        return budget_key(self.scope, self.name)

    def covers(self, job: Job) -> bool:
        return self.name == (job.session_id if self.scope is BudgetScope.SESSION else job.project)


def budget_key(scope: BudgetScope, name: str) -> str:
    """`session s1`, `project vision`."""
    return f"{scope.value} {name}"


def accounts_of(job: Job) -> Iterator[str]:
    """The keys of what its device time is charged to."""
    yield budget_key(BudgetScope.PROJECT, job.project)
    if job.session_id is not None:
        yield budget_key(BudgetScope.SESSION, job.session_id)


def held_s(job: Job, at_s: float) -> float:
    """Device-seconds that the present attempt has used by then."""
    return 0.0 if job.attempt is None else max(0.0, at_s - job.attempt.ordered_at_s) * job.shape.n_devices
