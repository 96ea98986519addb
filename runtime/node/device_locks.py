"""Which devices of this machine are ours to use: one nightlab at a time has a device, whoever runs it.

The server has the device's lock, and each supervisor shares a second one, so that a device whose server was killed
is not taken by others while its jobs go on. CPU slots need no lock.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence

from runtime.model.nouns import Device
from runtime.node import machine_locks
from runtime.node.device_probe import PRETENDED_VARIABLE


def device_locks_for(devices: Sequence[Device], environ: Mapping[str, str]) -> DeviceLocks:
    """Locks for accelerators. Pretended ones are shared only by those that share the folder that plays them."""
    played = environ.get(PRETENDED_VARIABLE)
    real = [device for device in devices if not device.is_fake]
    return DeviceLocks(devices, played) if played else DeviceLocks(real, None)


class DeviceLocks:
    """Changed by the engine alone."""

    def __init__(self, devices: Sequence[Device], folder: str | None) -> None:
        self._folder = folder
        self._names = {device.index: f"device-{device.uuid}" for device in devices if device.kind != "cpu"}
        self._held: dict[int, int] = {}
        self._cleared: set[int] = set()
        """Held, and no supervisor of others has been seen on them since."""

    @property
    def use_paths(self) -> Mapping[int, str]:
        """By device: the lock that a supervisor shares while its attempt is there."""
        return {index: machine_locks.path_of(f"{name}-use", self._folder) for index, name in self._names.items()}

    def claim(self, own_supervisors: Collection[int]) -> dict[int, str]:
        """Take what can be had now. Returns, by device, in words who has the others."""
        return {
            index: f"held by another nightlab: {who}"
            for index in self._names
            if (who := self._claim(index, own_supervisors)) is not None
        }

    def release(self) -> None:
        for descriptor in self._held.values():
            os.close(descriptor)
        self._held.clear()
        self._cleared.clear()

    def _claim(self, index: int, own_supervisors: Collection[int]) -> str | None:
        path = machine_locks.path_of(self._names[index], self._folder)
        held = self._held.get(index)
        if held is not None and not machine_locks.is_at(held, path):
            os.close(self._held.pop(index))  # Its file was swept away: others could not see that we have it.
            held = None
        try:
            if held is None:
                held = machine_locks.take(path)
                if held is None:
                    return machine_locks.holder(path)
                self._held[index] = held
                self._cleared.discard(index)
            return None if index in self._cleared else self._look_for_use(index, own_supervisors)
        except OSError as error:
            return f"its lock can not be taken ({error.strerror}: {error.filename})"

    def _look_for_use(self, index: int, own_supervisors: Collection[int]) -> str | None:
        path = self.use_paths[index]
        unused = machine_locks.take(path)
        if unused is not None:
            os.close(unused)
        elif foreign := machine_locks.holders(path) - set(own_supervisors):
            return ", ".join(machine_locks.described(foreign))
        self._cleared.add(index)
        return None
