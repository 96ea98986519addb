"""The nouns of the runtime: nodes, devices, jobs, attempts. Frozen; replaced, never changed. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

from .states import Condition, JobState, OnTimeout, StopCause


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    index: int
    kind: str
    """`cpu` for a CPU slot, else the accelerator model (`H100`)."""
    uuid: str
    memory_mb: int | None = None
    is_fake: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    node_id: str
    generation: int
    """Grows with every (re)registration; reports carry it, older ones change nothing."""
    boot_id: str
    hostname: str
    cpus: int
    memory_mb: int
    devices: tuple[Device, ...]
    why_not_sealed: str | None = None
    """What it lacks for sealed jobs, and what to do. None: nothing that is known beforehand."""
    sealed_by: str | None = None
    """How it seals jobs: `root`, `user namespace`, `landlock`. None: not at all, or nothing was told."""


WHOLE = 1000
"""Thousandths of a device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxReached:
    """How far an attempt was really shut off from its machine."""

    level: str
    layers: tuple[str, ...]
    uid: int | None = None
    """None: the user that nightlab runs as."""
    how: str | None = None
    """Of a sealed one: `root`, `user namespace` or `landlock`. None: not sealed, or not told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """The part of an attempt on one node. Ranks first_rank .. first_rank + len(devices) - 1 sit here."""

    node_id: str
    devices: tuple[int, ...]
    """Device indexes, ascending."""
    first_rank: int
    kept: tuple[int, ...] = ()
    """Devices that it leaves idle because they share cores with an exclusive attempt's; nobody else gets them."""
    device_thousandths: int = WHOLE
    """How much of its device it holds."""
    cpu_milli: int = 0
    """Thousandths of a core that are set aside for it; 0: it asked for none."""
    memory_mb: int = 0
    """Memory of the node that is set aside for it; 0: it asked for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What a job asks for besides a number of devices of a kind."""

    or_accelerators: tuple[str, ...] = ()
    """Device kinds that will do where `Shape.accelerator` is not to be had, best first. A gang is of one kind."""
    device_memory_mb: int = 0
    """The least memory of each device."""
    device_thousandths: int = WHOLE
    """How much of its device it takes; less than all only for a job of one device."""
    cpu_milli: int = 0
    """Thousandths of a core for each group of devices; 0: it takes what is left."""
    memory_mb: int = 0
    """Memory of the node for each group of devices; 0: none is set aside."""
    is_exclusive: bool = False
    """Nothing else on its devices, nor on the cores that belong to them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What a job needs; jobs of one shape are interchangeable for the question whether they fit."""

    n_devices: int
    """0: only cores and memory of one node."""
    accelerator: str | None = None
    """Device kind wanted; None takes any."""
    devices_per_node: int | None = None
    """Whole groups of this size on each node (`GPU_8xH100`); None: anywhere."""
    needs: Needs | None = None
    """None: nothing else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependency:
    """What has to have ended, and how, before a job may start."""

    on: str
    """A job (`j3`) or an array (`a10`)."""
    condition: Condition


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayPlace:
    """Which task of which array a job is."""

    array_id: str
    index: int
    n_tasks: int
    parallel: int | None
    """At most so many of its tasks hold devices at once; None: any number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worth:
    """What a job is expected to bring, as its submitter says; compared within one experiment of one project."""

    gain: float
    """In the units of the experiment's objective; never negative."""
    uncertainty: float
    """Standard deviation of that gain."""
    cost_s: float
    """Device-seconds in all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopOrder:
    cause: StopCause
    reason: str
    beneficiary: str | None
    """The job it is preempted for. Stays when a cancel or a time limit overtakes the preemption; else None."""
    ordered_at_s: float
    grace_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One execution that holds devices now. Ended attempts live in the history."""

    number: int
    placements: tuple[Placement, ...]
    ordered_at_s: float
    started_at_s: float | None = None
    checkpoint_at_s: float | None = None
    """When this attempt's newest complete checkpoint was seen; None: it has made none."""
    expected_s: float | None = None
    """What jobs like it were known to need in all when it was ordered; None: nothing was known."""
    leave_s: float | None = None
    """The longest that attempts like it took to leave, when it was ordered; None: none had left yet."""
    stop: StopOrder | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A live job as the scheduler sees it. The full spec lives in the store."""

    job_id: str
    order: int
    """Submission sequence; ties are broken by it."""
    project: str
    experiment: str
    session_id: str | None
    priority_class: str
    priority: int
    """Higher wins."""
    is_preemptible: bool
    shape: Shape
    submitted_at_s: float
    grace_s: float
    max_retries: int
    timeout_s: float | None = None
    """Running time of one attempt."""
    on_timeout: OnTimeout = OnTimeout.END
    max_total_s: float | None = None
    """Running time of all attempts together."""
    queue_timeout_s: float | None = None
    finish_by_s: float | None = None
    """Seconds since the epoch, by when nothing of it may run or wait any more; None: no such hour."""
    array: ArrayPlace | None = None
    waits_for: tuple[Dependency, ...] = ()
    """What has not ended yet. Such a job is queued, and in no queue."""
    worth: Worth | None = None
    """None: nobody said."""
    unmet: str | None = None
    """Why it can never start, in words; it is about to end. None: it may."""
    state: JobState = JobState.QUEUED
    not_before_s: float = 0.0
    """Earliest next start (backoff after a retry)."""
    n_attempts: int = 0
    n_retries: int = 0
    n_preemptions: int = 0
    n_stalled: int = 0
    """Attempts in a row that asked for a requeue, or lost their supervisor, without a newer checkpoint."""
    hang_after_s: float | None = None
    """A silence so long is a hang; None: learned from the job itself; 0: none is."""
    n_infrastructure: int = 0
    """Attempts in a row that failed through no fault of the job, without a newer checkpoint."""
    avoid: tuple[Placement, ...] = ()
    """Where they were, newest first; others are taken where it fits there."""
    checkpoint_step: int | None = None
    """Newest complete checkpoint; None: none yet."""
    attempt_start_checkpoint: int | None = None
    """`checkpoint_step` when the current attempt was ordered."""
    done_s: float = 0.0
    """Seconds of work that earlier attempts did and saved."""
    ran_s: float = 0.0
    """Seconds that earlier attempts ran."""
    queued_since_s: float = 0.0
    """When it last entered the queue; `queue_timeout_s` counts from here."""
    attempt: Attempt | None = None
    """Set exactly while the job holds devices."""

    @property
    def is_waiting(self) -> bool:
        """Whether others have to end before it may start."""
        return bool(self.waits_for) or self.unmet is not None

    @property
    def limit_s(self) -> float | None:
        """How long its next or present attempt may run; None: as long as it likes."""
        left_s = None if self.max_total_s is None else max(0.0, self.max_total_s - self.ran_s)
        return min((limit for limit in (self.timeout_s, left_s) if limit is not None), default=None)

    @property
    def is_renewed(self) -> bool:
        """Whether it goes on as a new attempt when the present one has reached its limit."""
        if self.on_timeout is OnTimeout.END or self.timeout_s is None:
            return False
        return self.max_total_s is None or self.timeout_s < self.max_total_s - self.ran_s

    def but(self, **changes: Any) -> Self:
        """The same job with some fields replaced."""
        return replace(self, **changes)
