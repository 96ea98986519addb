"""What this node's accelerators are fit for now: who else is on them, who has their locks, whether they answer.

Looked at every few seconds, before each attempt, and after each, since a device is free only when it is empty. What is
not fit is reported with the reason and never given out; it comes back by itself. Nobody's process is touched.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from runtime.engines.contract import DevicesSeen, NodeReport
from runtime.engines.watched import Watched
from runtime.model.nouns import Device
from runtime.node import processes
from runtime.node.device_locks import DeviceLocks
from runtime.node.device_probe import DeviceProbe, Sight
from runtime.node.patience import within

LEFTOVER_MB = 600
"""Less than this is what an idle device may show."""
MOST_NAMED = 3
"""Foreign processes named in a reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Looks:
    """How devices are looked at."""

    every_s: float = 5.0
    patience_s: float = 2.0
    """A driver that does not answer within this is hanging."""
    empty_s: float = 5.0
    """A device that is not empty so long after its attempt is reported as not fit."""


class DeviceWatch:
    """Belongs to the engine's event loop."""

    def __init__(
        self,
        *,
        node_id: str,
        devices: Sequence[Device],
        probe: DeviceProbe,
        locks: DeviceLocks,
        attempts: Callable[[], Iterable[Watched]],
        say: Callable[[NodeReport], None],
        looks: Looks,
    ) -> None:
        """`attempts` are those that the engine knows now."""
        self._node_id = node_id
        self._indexes = tuple(device.index for device in devices if device.kind != "cpu")
        self._probe = probe
        self._locks = locks
        self._attempts = attempts
        self._say = say
        self._looks = looks
        self._turn = asyncio.Lock()
        """One look at a time, so that what is told last was seen last."""
        self._is_hanging = False
        self._told: dict[int, str] | None = None
        self._sights: Mapping[int, Sight] = {}

    def is_watching(self, devices: Iterable[int]) -> bool:
        """Whether any of these devices is looked at."""
        return not set(devices).isdisjoint(self._indexes)

    async def look(self) -> None:
        """See what is fit, and report it when it is not what was reported last."""
        if not self._indexes:
            return
        async with self._turn:
            self._tell(await self._unfit())

    async def refusal(self, watched: Watched) -> str | None:
        """Why the devices of an attempt that is about to start are not fit; None: they are."""
        if not self.is_watching(watched.devices):
            return None
        async with self._turn:
            unfit = await self._unfit(apart=watched)
            self._tell(unfit)
        return next((f"device {index}: {unfit[index]}" for index in watched.devices if index in unfit), None)

    async def until_empty(self, watched: Watched) -> str | None:
        """Return when the devices of an attempt that is gone are empty, or were reported as not.

        Returns the fault that one of them has, in words.
        """
        mine = set(watched.devices) & set(self._indexes)
        deadline, pause_s = time.monotonic() + self._looks.empty_s, 0.02
        while mine:
            async with self._turn:
                unfit = await self._unfit(apart=watched)
                faults = [sight.fault for index in sorted(mine) if (sight := self._sights.get(index)) and sight.fault]
                if faults or not self._has_news(mine, unfit) or time.monotonic() > deadline:
                    self._tell(unfit)
                    return faults[0] if faults else None
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, 0.5)
        return None

    def _has_news(self, devices: set[int], unfit: Mapping[int, str]) -> bool:
        """Whether one of these is unfit for a reason that was not told yet: it may pass."""
        told = self._told or {}
        return any(index in devices and told.get(index) != reason for index, reason in unfit.items())

    def _tell(self, unfit: dict[int, str]) -> None:
        if unfit != self._told:
            self._told = unfit
            self._say(DevicesSeen(node_id=self._node_id, devices=self._indexes, unfit=tuple(sorted(unfit.items()))))

    async def _unfit(self, apart: Watched | None = None) -> dict[int, str]:
        """By device, in words, why it is not fit. `apart` is an attempt that counts as gone."""
        attempts = [watched for watched in self._attempts() if watched is not apart]
        supervisors = [pid for watched in attempts if (pid := watched.supervisor_pid) is not None]
        unfit = self._locks.claim([*supervisors, *([apart.supervisor_pid or 0] if apart else [])])
        self._sights = await self._look_at_devices()
        held = {index for watched in attempts for index in watched.devices}
        own = processes.Belonging({watched.prepared.marker for watched in attempts}, supervisors)
        for index, sight in self._sights.items():
            reason = unfit_reason(sight, own, is_held=index in held)
            if reason is not None:
                unfit.setdefault(index, reason)
        return unfit

    async def _look_at_devices(self) -> Mapping[int, Sight]:
        """While one look hangs, no other is begun, and no device answers."""
        if self._is_hanging:
            return dict.fromkeys(self._indexes, Sight(answers=False))
        self._is_hanging = True

        def look() -> Mapping[int, Sight]:
            try:
                return self._probe.look()
            finally:
                self._is_hanging = False

        try:
            return await within(self._looks.patience_s, look)
        except TimeoutError:
            return dict.fromkeys(self._indexes, Sight(answers=False))


def unfit_reason(sight: Sight, own: Container[int], *, is_held: bool) -> str | None:
    """Why a device that shows this can not be given out; None: it can.

    Args:
        own: the processes that are ours.
        is_held: an attempt of ours is there.
    """
    if sight.fault is not None:
        return f"{sight.fault}; nothing is started there until the driver was loaded again or the machine restarted"
    if not sight.answers:
        return "it does not answer"
    foreign = [pid for pid in sight.pids if pid not in own]
    shown = [pid for pid in foreign if processes.look_up(pid) is not None]
    if shown:
        more = f" and {len(shown) - MOST_NAMED} more" if len(shown) > MOST_NAMED else ""
        return f"in use by {', '.join(processes.describe(pid) for pid in shown[:MOST_NAMED])}{more}"
    if is_held:
        return None  # Ours; in a container the driver may tell other pids than we see.
    if foreign:
        return f"in use by a process that is not shown here (pid {foreign[0]})"
    if sight.used_mb > LEFTOVER_MB:
        return "its memory is held, though no process is shown there"
    return None
