"""What an operator can set about scheduling. Defaults are the ones documented in docs/scheduling.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorityClass:
    name: str
    priority: int
    """Higher wins; strictly: only a strictly higher class preempts."""
    is_preemptible: bool
    """What a job of this class is unless it says otherwise."""


DEFAULT_CLASSES: Mapping[str, PriorityClass] = MappingProxyType(
    {
        "critical": PriorityClass(name="critical", priority=1000, is_preemptible=False),
        "normal": PriorityClass(name="normal", priority=500, is_preemptible=True),
        "exploratory": PriorityClass(name="exploratory", priority=100, is_preemptible=True),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """The most devices that some jobs may hold together."""

    max_devices: int
    project: str | None = None
    """None: all projects together."""
    priority_class: str | None = None
    """None: all classes together."""

    def covers(self, project: str, priority_class: str) -> bool:
        return self.project in (None, project) and self.priority_class in (None, priority_class)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectShare:
    """What a project is entitled to, beside others."""

    deserved_devices: int = 0
    """It has these first."""
    weight: float = 1.0
    """Of the rest it gets this part of the sum of all weights; more than 0."""


DEFAULT_SHARE = ProjectShare()
NO_SHARES: Mapping[str, ProjectShare] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    classes: Mapping[str, PriorityClass] = field(default_factory=lambda: DEFAULT_CLASSES)
    quotas: tuple[Quota, ...] = ()
    """Each holds: a job starts only if all that cover it have room for it."""
    projects: Mapping[str, ProjectShare] = field(default_factory=lambda: NO_SHARES)
    """Those that are not named deserve nothing and have the weight 1."""
    fair_share_max_s: float = 604800.0
    """For no longer than this a job lets others by for what its project had beyond its share; 0: no fair share."""
    min_run_s: float = 0.0
    """An attempt younger than this is no victim."""
    preempt_burst: float = 2.0
    """A class below the highest may have others give up so many times the devices there are, all at once."""
    preempt_per_hour: float = 8.0
    """And so many times the devices there are each hour."""
    max_stalled: int = 3
    """Restarts without a newer checkpoint that end a job."""
    max_infrastructure_retries: int = 3
    """New attempts in a row, without a newer checkpoint, after failures of the machine; they cost no `max_retries`."""
    retry_backoff_s: float = 5.0
    """After a failure, doubles with each one in a row, up to `retry_backoff_max_s`."""
    retry_backoff_max_s: float = 300.0
    overtaking: float = 1.0
    """Inside a class a job lets later ones by for this times its expected work (device-seconds); 0: none."""
    overtaking_max_s: float = 86400.0
    """But for no longer than this; a job whose run time is unknown lets nobody by."""
    backfill_patience_s: float = 604800.0
    """Once the head of a queue has waited so long, nothing more starts on devices that it could use."""
    disk_quota_gb: float = 0.0
    """Of checkpoints and working folders, for each project (10^9 bytes); 0: none."""
    gc_every_hours: float = 0.0
    """How often disk space is freed without being asked; 0: never."""
    log_cap_mb: int = 256
    """Of each file of an attempt's output; the middle of what is longer is cut out."""
    hang_least_s: float = 600.0
    """Silence that is never taken for a hang when the limit is learned."""
    hang_factor: float = 10.0
    """A job hangs after this times its longest silence so far; 0: only jobs that set a limit of their own can hang."""

    @property
    def shares_fairly(self) -> bool:
        """Whether projects are weighed against each other at all."""
        return self.fair_share_max_s > 0.0
