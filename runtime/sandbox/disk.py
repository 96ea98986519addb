"""How much a sealed attempt has written, looked at now and then. Standard library only: the supervisors import this."""

from __future__ import annotations

import contextlib
import os
import time

from runtime.sandbox import folders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

LOOK_S = 1.0
TOO_DEEP = 2**62
"""In the place of a number of bytes: more than any bound."""
MOST_OF_THE_TIME = 0.02
"""A look that takes long is taken less often, so that all of them cost no more than this part of the time."""


class Watch:
    """Times are on the monotonic clock, in seconds."""

    def __init__(self, sandbox: dict[str, Any], now_s: float) -> None:
        self._folders: list[str] = sandbox.get("writable", [])
        self._bound: int = sandbox.get("disk_bytes", 0)
        self._look_at = now_s + LOOK_S
        self._used = 0

    def wait_s(self, now_s: float) -> float:
        """Until the next look; of one that is not sealed, none is taken."""
        return max(0.0, self._look_at - now_s) if self._folders else 3600.0

    def is_passed(self, now_s: float) -> bool:
        """Look, if that is due: whether it has written more than it may."""
        if not self._folders or now_s < self._look_at:
            return False
        self._used = sum(used(folder) for folder in self._folders)
        took_s = time.monotonic() - now_s
        self._look_at = now_s + max(LOOK_S, took_s / MOST_OF_THE_TIME)
        return self._used > self._bound

    def words(self) -> str:
        if self._used >= TOO_DEEP:
            return "ended: its folders are nested too deep for what they hold to be counted (limits.disk_bytes)"
        return f"ended: its folders hold {self._used} bytes, and it may write {self._bound} (limits.disk_bytes)"


def used(folder: str) -> int:
    """Bytes on the disk below a folder; what vanishes meanwhile does not count. TOO_DEEP: they can not be counted."""
    total = 0
    try:
        for place, names in folders.walk(folder):
            for name in names:
                try:
                    total += os.lstat(os.path.join(place, name)).st_blocks * 512
                except OSError:
                    continue
    except folders.TooDeep:
        return TOO_DEEP
    return total


def empty(folder: str) -> None:
    """Remove all that is in a folder; what can not be removed stays. Links are removed, not followed."""
    places: list[str] = []
    with contextlib.suppress(folders.TooDeep):
        for place, names in folders.walk(folder):
            places.append(place)
            for name in names:
                _remove(os.remove, os.path.join(place, name))
    for place in reversed(places[1:]):
        _remove(os.rmdir, place)


def _remove(by: Callable[[str], None], path: str) -> None:
    with contextlib.suppress(OSError):
        by(path)
