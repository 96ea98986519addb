"""How much of the devices each project had of late: device-seconds that fade with a half-life. Pure.

Kept up by `apply` whenever an attempt takes devices or gives them back, from the time that the event carries; so
replay leads to the same numbers. Between two changes it follows from what is held. It is kept by priority too, so that
the order of a class need not depend on lower work.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import exp, log

HALF_LIFE_S = 86400.0
"""What was held a day ago counts half."""
TAU_S = HALF_LIFE_S / log(2.0)
"""Who holds one device for ever has used this many device-seconds, and never more."""
N_KEPT = 4096
"""Parts remembered; those that hold nothing and used the least of late are forgotten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """One project's at one priority, as it was at a time."""

    project: str
    priority: int
    at_s: float
    n_devices: int
    """Held from then on."""
    device_s: float
    """Used up to then, faded."""

    def mean_devices(self, now_s: float) -> float:
        """What it held on average of late: over all time, where what is longer ago counts less."""
        faded = exp(-max(0.0, now_s - self.at_s) / TAU_S)
        return self.n_devices * (1.0 - faded) + self.device_s / TAU_S * faded


@dataclass(slots=True, kw_only=True)
class Usages:
    """Of all projects that are remembered."""

    parts: dict[tuple[str, int], Usage] = field(default_factory=dict)
    """By project and priority."""

    def change(self, project: str, priority: int, n_devices: int, at_s: float) -> None:
        """It holds so many devices more (or less) from now on; times never go back."""
        old = self.parts.get((project, priority))
        if old is None:
            old = Usage(project=project, priority=priority, at_s=at_s, n_devices=0, device_s=0.0)
        now_s = max(at_s, old.at_s)
        self.parts[project, priority] = Usage(
            project=project,
            priority=priority,
            at_s=now_s,
            n_devices=old.n_devices + n_devices,
            device_s=old.mean_devices(now_s) * TAU_S,
        )
        if len(self.parts) > N_KEPT:
            self._forget(now_s)

    def remembered(self) -> Iterator[Usage]:
        """All of it, for a snapshot."""
        yield from self.parts.values()

    def remember(self, usages: Iterable[Usage]) -> None:
        """Take over what a snapshot holds."""
        for usage in usages:
            self.parts[usage.project, usage.priority] = usage

    def _forget(self, now_s: float) -> None:
        """Half of those that hold nothing."""
        idle = [usage for usage in self.parts.values() if not usage.n_devices]
        least = sorted(idle, key=lambda usage: (usage.mean_devices(now_s), usage.project, usage.priority))
        for usage in least[: len(idle) // 2]:
            del self.parts[usage.project, usage.priority]
