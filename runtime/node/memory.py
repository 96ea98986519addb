"""The most memory that the processes of an attempt held at once, without a thread and nearly without cost.

Two lower bounds, of which the larger one counts. The kernel keeps the largest resident set of each process
(`ru_maxrss`, getrusage(2)), exact for the many jobs that are one process. For those that are several, now and then a
look adds up the proportional set sizes (`smaps_rollup`, proc(5)): memory that they share, as forked data loaders do,
counts once. A control group's own peak is not used: it counts the page cache too, so that reading a large file would
look like a large model. Standard library only: the supervisors import this.
"""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

FIRST_LOOK_S = 1.0
LOOK_S = 5.0
"""Between looks, at least."""
COST = 200.0
"""Between looks, at least this many times what the last one took: half a percent of one core."""


class Peak:
    """What is known of one attempt. Times are on the monotonic clock."""

    __slots__ = ("_kb", "look_at")

    def __init__(self, now: float) -> None:
        self._kb = 0
        self.look_at = now + FIRST_LOOK_S
        """When the next look is due."""

    @property
    def mb(self) -> float | None:
        """In MiB; None: nothing is known."""
        return round(self._kb / 1024.0, 1) if self._kb else None

    def ended(self, max_rss_kb: int) -> None:
        """Take what the kernel says of a process that has ended, and of those that it waited for."""
        self._kb = max(self._kb, max_rss_kb)

    def look(self, find: Callable[[], Collection[int]]) -> None:
        """Add up what the processes that `find` names hold now; of a single one the kernel tells at its end."""
        began = time.monotonic()
        pids = find()
        if len(pids) > 1:
            self._kb = max(self._kb, sum(held_kb(pid) for pid in pids))
        now = time.monotonic()
        self.look_at = now + max(LOOK_S, COST * (now - began))


def held_kb(pid: int) -> int:
    """The proportional set size of a process in KiB; 0: it is gone, or may not be read."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            for line in file:
                if line.startswith(b"Pss:"):
                    return int(line.split()[1])
    except OSError:
        return 0
    return 0
