"""What a device shows at a moment: who computes on it, how much memory is held, whether it answers, a fault.

One interface, two implementations: NVML, and a folder that plays a machine's devices (`PretendedProbe`), so that what
is built on it can be tried and tested with real processes and without a GPU. They block and may hang: see `patience`.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from runtime.model.nouns import Device
from runtime.node import kernel_log

PRETENDED_VARIABLE = "NIGHTLAB_PRETENDED_DEVICES"
"""Names the folder that plays this machine's `fake:` devices."""
_MB = 1024 * 1024
_NOTES = frozenset({"leftover", "silent", "xid"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """One device at one moment."""

    answers: bool = True
    pids: tuple[int, ...] = ()
    """Processes that compute on it, ascending; as far as they are shown."""
    used_mb: int = 0
    """Memory that is held, without what the driver itself and the screen need."""
    fault: str | None = None
    """In words, what makes it unfit for anything: a fatal XID."""


class DeviceProbe(Protocol):
    def look(self) -> Mapping[int, Sight]:
        """By device index. Devices that are not in it can not be looked at, and count as fit."""
        ...


class NoProbe:
    """CPU slots, and pretended devices that nobody plays."""

    def look(self) -> Mapping[int, Sight]:
        return {}


def probe_for(devices: Sequence[Device], environ: Mapping[str, str]) -> DeviceProbe:
    """The probe for these devices of this machine."""
    if any(device.kind != "cpu" and not device.is_fake for device in devices):
        return NvmlProbe([device for device in devices if not device.is_fake])
    played = environ.get(PRETENDED_VARIABLE)
    return PretendedProbe(Path(played), devices) if played else NoProbe()


class PretendedProbe:
    """Devices played by folders `FOLDER/<uuid>`.

    A process "computes on" a device while it lives and a file named by its pid is in there; the file may hold how many
    MB it holds. A file `leftover` holds MB that stay behind without a process, `silent` makes the device not answer,
    `xid` holds the number of a fault.
    """

    def __init__(self, folder: Path, devices: Sequence[Device]) -> None:
        self._folder = folder
        self._devices = [device for device in devices if device.is_fake]

    def look(self) -> Mapping[int, Sight]:
        return {device.index: self._sight(self._folder / device.uuid) for device in self._devices}

    def _sight(self, folder: Path) -> Sight:
        names = set(os.listdir(folder)) if folder.is_dir() else set()
        pids = sorted(int(name) for name in names - _NOTES if name.isdigit() and os.path.exists(f"/proc/{name}"))
        xid = _number(folder / "xid") if "xid" in names else None
        return Sight(
            answers="silent" not in names,
            pids=tuple(pids),
            used_mb=sum(_number(folder / name) for name in [*map(str, pids), "leftover"] if name in names),
            fault=None if xid is None else kernel_log.describe_xid(xid),
        )


class NvmlProbe:
    """Through NVML. Opened at the first look, and again after it failed (a driver that was exchanged, say)."""

    def __init__(self, devices: Sequence[Device]) -> None:
        self._devices = list(devices)
        self._handles: dict[int, Any] | None = None
        self._log = kernel_log.KernelLog()

    def look(self) -> Mapping[int, Sight]:
        faults = self._log.fatal_faults()
        nvml = _nvml()
        try:
            handles = self._handles = self._handles or self._open(nvml)
        except nvml.NVMLError:
            return {device.index: Sight(answers=False) for device in self._devices}
        return {device.index: self._sight(nvml, handles.get(device.index), faults) for device in self._devices}

    def _open(self, nvml: Any) -> dict[int, Any]:
        nvml.nvmlInit()
        handles = {}
        for device in self._devices:
            try:
                handles[device.index] = nvml.nvmlDeviceGetHandleByUUID(device.uuid.encode())
            except nvml.NVMLError:
                continue  # Gone: it does not answer.
        return handles

    def _sight(self, nvml: Any, handle: Any, faults: Mapping[str, str]) -> Sight:
        if handle is None:
            return Sight(answers=False)
        try:
            computing = nvml.nvmlDeviceGetComputeRunningProcesses(handle)
            on_screen = nvml.nvmlDeviceGetGraphicsRunningProcesses(handle)
            used = _used_bytes(nvml, handle) - sum(p.usedGpuMemory or 0 for p in on_screen)
            bus_id = nvml.nvmlDeviceGetPciInfo(handle).busId
        except nvml.NVMLError:
            self._handles = None
            return Sight(answers=False)
        return Sight(
            pids=tuple(sorted({int(process.pid) for process in computing})),
            used_mb=max(0, used) // _MB,
            fault=faults.get(kernel_log.short_bus_id(bus_id.decode() if isinstance(bus_id, bytes) else bus_id)),
        )


def _nvml() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # An old distribution of the same module says that it is old.
        import pynvml
    return pynvml


def _used_bytes(nvml: Any, handle: Any) -> int:
    """Version 2 counts what the driver reserves for itself apart; older drivers do not know it."""
    try:
        return int(nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2).used)
    except (nvml.NVMLError, TypeError, AttributeError):
        return int(nvml.nvmlDeviceGetMemoryInfo(handle).used)


def _number(path: Path) -> int:
    try:
        text = path.read_text().strip()
    except OSError:
        return 0
    return int(text) if text.isascii() and text.isdigit() else 0
