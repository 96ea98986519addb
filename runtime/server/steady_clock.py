"""The one clock of the server: seconds since the epoch that never jump, whatever is done to the machine's clock.

Durations (grace, time limits, back-off, leases) are differences of these times, so a clock that is set forward or back
must not change them. The machine's clock is followed while it runs as time does; when it jumps, the jump is left out
and told.
"""

from __future__ import annotations

import time
from collections.abc import Callable

SLACK_S = 1.0
SLEW = 0.001
"""Differences between the clocks that adjusting (NTP) explains, at once and per second; more is a jump."""


def seconds_since_boot() -> float:
    """Counts on while the machine sleeps, and is never set."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class SteadyClock:
    """Called, it tells the time; never earlier than before."""

    def __init__(
        self, *, wall: Callable[[], float] = time.time, ticks: Callable[[], float] = seconds_since_boot
    ) -> None:
        self._wall = wall
        self._ticks = ticks
        self._last_tick = ticks()
        self._last_s = wall()
        self.ahead_s = 0.0
        """How far it is ahead of the machine's clock; negative: behind."""

    def __call__(self) -> float:
        tick = self._ticks()
        passed_s = max(0.0, tick - self._last_tick)
        expected_s = self._last_s + passed_s
        told_s = self._wall() + self.ahead_s
        if abs(told_s - expected_s) > SLACK_S + SLEW * passed_s:
            self.ahead_s += expected_s - told_s
            told_s = expected_s
        self._last_tick = tick
        self._last_s = max(self._last_s, told_s)
        return self._last_s

    def not_before(self, at_s: float) -> None:
        """Go on from this time at least: the latest that was recorded, perhaps by a clock that ran ahead."""
        now_s = self()
        if at_s > now_s:
            self.ahead_s += at_s - now_s
            self._last_s = at_s

    @property
    def notice(self) -> str | None:
        """What a person should know; None: the clocks agree."""
        if abs(self.ahead_s) <= SLACK_S:
            return None
        how = "ahead of" if self.ahead_s > 0 else "behind"
        return (
            f"the runtime's clock is {abs(self.ahead_s):.0f} s {how} the machine's, which was set; "
            "waiting and running times are right, times of the day are off by as much"
        )
