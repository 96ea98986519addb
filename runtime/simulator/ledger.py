"""What happened in a simulation: a line for each job, sums of device time, and the changes that a plot needs."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

from runtime.model.states import JobState

from .work import Execution, Lost, lost_by
from .workload import TraceJob


@dataclass(slots=True, kw_only=True)
class JobLine:
    """How one job fared; times in virtual seconds."""

    job: TraceJob
    submitted_s: float | None = None
    """None: it was refused."""
    started_s: float | None = None
    """Start of its first attempt."""
    ended_s: float | None = None
    end_state: JobState | None = None
    """None: refused, or not ended."""
    n_attempts: int = 0
    n_preemptions: int = 0
    held_device_s: float = 0.0
    lost_device_s: float = 0.0
    refusal: str | None = None


@dataclass(slots=True, kw_only=True)
class Changes:
    """Steps over time, one entry a change: the class it concerns, and what it adds to devices held and jobs waiting."""

    classes: list[str] = field(default_factory=list)
    at_s: array[float] = field(default_factory=lambda: array("d"))
    which: array[int] = field(default_factory=lambda: array("B"))
    """Index into `classes`."""
    d_held: array[int] = field(default_factory=lambda: array("l"))
    d_waiting: array[int] = field(default_factory=lambda: array("l"))
    preemptions_s: array[float] = field(default_factory=lambda: array("d"))

    def add(self, name: str, at_s: float, *, d_held: int = 0, d_waiting: int = 0) -> None:
        if name not in self.classes:
            self.classes.append(name)
        self.at_s.append(at_s)
        self.which.append(self.classes.index(name))
        self.d_held.append(d_held)
        self.d_waiting.append(d_waiting)


class Ledger:
    """Kept while a simulation runs, read afterwards."""

    def __init__(self, jobs: Sequence[TraceJob], *, n_devices: int) -> None:
        self.lines = {job.job_id: JobLine(job=job) for job in jobs}
        self.n_devices = n_devices
        self.n_node_faults = 0
        self.n_attempt_faults = 0
        self.lost_to_preemption = Lost()
        """Device-seconds."""
        self.lost_to_faults = Lost()
        """Device-seconds."""
        self.changes = Changes()
        self.closed_s = 0.0
        """The virtual time at which nothing was left to happen."""

    def refused(self, job_id: str, why: str) -> None:
        self.lines[job_id].refusal = why

    def submitted(self, job_id: str, now_s: float) -> None:
        line = self.lines[job_id]
        line.submitted_s = now_s
        self.changes.add(line.job.priority_class, now_s, d_waiting=1)

    def started(self, job_id: str, now_s: float) -> None:
        line = self.lines[job_id]
        line.n_attempts += 1
        if line.started_s is None:
            line.started_s = now_s
        self.changes.add(line.job.priority_class, now_s, d_held=line.job.n_devices, d_waiting=-1)

    def preempted(self, job_id: str, now_s: float) -> None:
        self.lines[job_id].n_preemptions += 1
        self.changes.preemptions_s.append(now_s)

    def left(self, execution: Execution, now_s: float, saved_s: float, *, is_again: bool) -> None:
        """An attempt gave back its devices; `saved_s` is the work of its job that survives."""
        job = execution.job
        line = self.lines[job.job_id]
        lost = lost_by(execution, now_s, saved_s)
        line.held_device_s += (now_s - execution.began_s) * job.n_devices
        line.lost_device_s += lost.total_s * job.n_devices
        if execution.notice_s is not None or (execution.attempt > 1 and line.n_preemptions):
            self.lost_to_preemption = self.lost_to_preemption.plus(lost, job.n_devices)
        else:
            self.lost_to_faults = self.lost_to_faults.plus(lost, job.n_devices)
        self.changes.add(job.priority_class, now_s, d_held=-job.n_devices, d_waiting=int(is_again))

    def ended(self, job_id: str, now_s: float, end_state: JobState) -> None:
        line = self.lines[job_id]
        if line.n_attempts == 0:
            self.changes.add(line.job.priority_class, now_s, d_waiting=-1)
        line.ended_s = now_s
        line.end_state = end_state

    def close(self, now_s: float) -> None:
        self.closed_s = now_s
