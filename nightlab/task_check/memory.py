"""Peak memory of jobs that run on this machine, by looking at their processes now and then.

What lies between two looks is missed; on other machines nothing is seen.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from runtime.node import processes
from runtime.node.device_probe import NvmlProbe
from runtime.node.devices import find_devices
from runtime.node.records import STARTED, read
from runtime_client.models import JobView

_MB = 1024 * 1024


@dataclass(slots=True)
class MemoryWatch:
    """Peaks by job id, in MiB."""

    attempts_folder: Path
    host_mb: dict[str, int] = field(default_factory=dict)
    device_mb: dict[str, int] = field(default_factory=dict)
    _probe: NvmlProbe | None = None
    _has_looked: bool = False

    def look(self, job: JobView) -> None:
        """Note what the job's processes hold now."""
        if job.state != "running" or not job.attempts:
            return
        attempt = job.attempts[-1]
        leader = self._leader(job.job_id, attempt.attempt)
        if leader is None:
            return
        pids = {leader} | processes.descendants([leader], processes.table())
        _raise(self.host_mb, job.job_id, sum(_resident(pid) for pid in pids) // _MB)
        probe = self._devices()
        if probe is not None:
            sights = probe.look().values()
            held = sum(sight.used_mb for sight in sights if pids & set(sight.pids))
            _raise(self.device_mb, job.job_id, held)

    def _leader(self, job_id: str, attempt: int) -> int | None:
        started = read(str(self.attempts_folder / job_id / str(attempt) / STARTED))
        return None if started is None else int(started["pid"])

    def _devices(self) -> NvmlProbe | None:
        if not self._has_looked:
            self._has_looked = True
            found = [one for one in find_devices("auto", os.environ) if one.kind != "cpu" and not one.is_fake]
            self._probe = NvmlProbe(found) if found else None
        return self._probe


def _raise(peaks: dict[str, int], job_id: str, seen: int) -> None:
    if seen > peaks.get(job_id, 0):
        peaks[job_id] = seen


def _resident(pid: int) -> int:
    """Bytes; 0 for a process that has just gone."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return 0
