"""Watches free space, so that nothing is started that could not write its output."""

from __future__ import annotations

import shutil
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

FRESH_S = 2.0


@dataclass(slots=True, kw_only=True)
class DiskWatch:
    home: Path
    """Where the database is."""
    low_bytes: int
    attempts_free: Callable[[], Awaitable[int]]
    """Free space where attempts write."""
    clock: Callable[[], float]
    recheck_s: float = FRESH_S
    low: str | None = None
    """In words, when there is too little space; None: there is enough."""
    _seen_at: float = float("-inf")

    async def refresh(self) -> None:
        """Look again, if the last look is old."""
        now_s = self.clock()
        if abs(now_s - self._seen_at) < self.recheck_s:
            return
        self._seen_at = now_s
        free = min(shutil.disk_usage(self.home).free, await self.attempts_free())
        if free >= self.low_bytes:
            self.low = None
            return
        self.low = (
            f"low disk: {free // 2**20} MiB free below {self.home}, at least {self.low_bytes // 2**20} MiB wanted; "
            "nothing is started until space is freed"
        )
