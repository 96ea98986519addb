"""Disk space: what the folders of jobs hold, and what may go."""

from __future__ import annotations

from pydantic import Field

from .wire import Wire


class GarbageRequest(Wire):
    dry_run: bool = True
    older_than_days: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Also what jobs left that ended so long ago, unless pinned or won. None: age is no reason."""
    quota_gb: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """For each project (10^9 bytes); what ended first goes first. None: as the policy says."""


class GarbageRow(Wire):
    reason: str
    """Why it goes (`losing_trial`, `older_than`, `over_quota`, `interrupted`) or stays (`live`, `pinned`, `winner`,
    `no_verdict`, `own`, `unknown`)."""
    goes: bool
    n_folders: int
    n_bytes: int


class Garbage(Wire):
    is_dry_run: bool
    rows: tuple[GarbageRow, ...]
    n_bytes_freed: int
    """Or that would be."""
    failures: tuple[str, ...] = ()
    """What could not be deleted, and why."""


__all__ = ["Garbage", "GarbageRequest", "GarbageRow"]
