"""Budgets: how much device time a session or a project may use, and how much it has used."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from .spec import NAME_PATTERN
from .wire import Wire


class BudgetScope(StrEnum):
    SESSION = "session"
    PROJECT = "project"


class BudgetSelector(Wire):
    """One session, or one project."""

    scope: BudgetScope
    name: str = Field(pattern=NAME_PATTERN, max_length=100)


class BudgetRequest(BudgetSelector):
    device_seconds: float = Field(gt=0, le=1e15, allow_inf_nan=False)
    """All that its jobs may use together, with what they have used already."""


class BudgetView(BudgetSelector):
    """Times are device-seconds."""

    device_seconds: float
    spent: float
    """Used by attempts that ended, and up to now by those that run."""
    committed: float
    """What live jobs are expected to need from now on, as far as that is known."""
    n_unknown: int
    """Live jobs of which it is not known."""
    is_used_up: bool


__all__ = ["BudgetRequest", "BudgetScope", "BudgetSelector", "BudgetView"]
