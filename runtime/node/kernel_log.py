"""What the kernel's log says of the devices: NVIDIA's driver reports faults there as "Xid". Linux.

The table is small on purpose: the errors after which NVIDIA's catalog wants a reset or a restart, whatever ran there.
Source: NVIDIA, "XID Errors" (docs.nvidia.com/deploy/xid-errors), sections on the numbers below.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping

FATAL_XIDS = {
    46: "the GPU stopped processing",
    48: "a double-bit memory error",
    62: "an internal micro-controller halted",
    64: "a failed page retirement or row remapping",
    74: "an NVLink error",
    79: "the GPU has fallen off the bus",
    92: "too many single-bit memory errors",
    95: "an uncontained memory error",
    109: "a context switch timed out",
    119: "the GPU's system processor timed out",
    120: "the GPU's system processor failed",
    140: "an unrecovered memory error",
}
"""After these nothing is started on the device until the driver was loaded again or the machine restarted."""

_XID = re.compile(r"NVRM: Xid \(PCI:(?P<bus>[0-9a-fA-F:.]+)\): (?P<number>\d+)\b")
_LOADED = re.compile(r"NVRM: loading NVIDIA UNIX")
_DEVICE = "/dev/kmsg"
_LONGEST_LINE = 8192


class KernelLog:
    """Read as it grows, so that a look costs what is new."""

    def __init__(self, path: str = _DEVICE) -> None:
        self._path = path
        self._descriptor: int | None = None
        self._faults: dict[str, str] = {}

    def fatal_faults(self) -> Mapping[str, str]:
        """By short bus id: the first fatal fault since the driver was loaded, in words.

        None at all where this user may not read the log.
        """
        note_faults(self._new_lines(), self._faults)
        return self._faults

    def _new_lines(self) -> list[str]:
        lines: list[str] = []
        try:
            if self._descriptor is None:
                self._descriptor = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            while True:
                try:
                    record = os.read(self._descriptor, _LONGEST_LINE)
                except BrokenPipeError:
                    continue  # The next line was overwritten meanwhile; the one after it comes.
                if not record:
                    return lines
                lines.append(record.decode(errors="replace").partition(";")[2].partition("\n")[0])
        except OSError:  # No more lines (EAGAIN), or this user may not read it.
            return lines


def note_faults(lines: Iterable[str], faults: dict[str, str]) -> None:
    """Add fatal faults to those by short bus id; a driver that is loaded again begins without any."""
    for line in lines:
        if _LOADED.search(line):
            faults.clear()
        match = _XID.search(line)
        if match and int(match["number"]) in FATAL_XIDS:
            faults.setdefault(short_bus_id(match["bus"]), describe_xid(int(match["number"])))


def describe_xid(number: int) -> str:
    return f"XID {number}: {FATAL_XIDS.get(number, 'a fault of the device')}"


def short_bus_id(text: str) -> str:
    """`00000000:3B:00.0` (NVML) and `0000:3b:00` (the kernel's log) are both `3b:00` in domain 0."""
    domain, _, rest = text.lower().partition(":")
    bus = rest.partition(".")[0]
    number = int(domain, 16) if domain else 0
    return bus if number == 0 else f"{number:x}:{bus}"
