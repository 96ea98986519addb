"""What was spent: device-seconds by session, user or project, and their cost where prices are set."""

from __future__ import annotations

from enum import StrEnum

from .wire import Wire


class SpendBy(StrEnum):
    SESSION = "session"
    USER = "user"
    PROJECT = "project"


class SpendSplit(Wire):
    """One quantity, by what became of the work."""

    useful: float
    """Kept, or still running."""
    replicate: float
    """The same, of jobs that repeat a configuration with a fresh seed."""
    lost_to_preemption: float
    """After the last checkpoint of attempts that left for others, a pause or a drain."""
    failed: float
    """Of jobs that failed or were cancelled, and after the last checkpoint of attempts that did not succeed."""

    @property
    def total(self) -> float:
        return self.useful + self.replicate + self.lost_to_preemption + self.failed


class SpendRow(Wire):
    name: str
    """Of the session, user or project."""
    device_seconds: SpendSplit
    cost: SpendSplit | None = None
    """None: no prices are set."""


class Spend(Wire):
    by: SpendBy
    since: float
    until: float
    rows: tuple[SpendRow, ...] = ()
    idle_device_seconds: float
    """Of registered devices that no attempt held, also while the runtime was down."""
    unpriced_kinds: tuple[str, ...] = ()
    """Kinds of devices that were used and have no price, where others have one."""
