"""What an operator sets about scheduling: the content of a policy file, and what the runtime says is in force.

Everything has the scheduler's own default, so a file names only what it changes. `classes` replaces all of the
default ones.
"""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, StringConstraints, model_validator

from .wire import Wire

Name = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^\S(.*\S)?$")]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False, strict=True)]
Factor = Annotated[float, Field(ge=0, allow_inf_nan=False, strict=True)]
Count = Annotated[int, Field(ge=0, strict=True)]
Flag = Annotated[bool, Field(strict=True)]


class PriorityClassSpec(Wire):
    priority: Annotated[int, Field(strict=True)]
    """Higher wins; only a strictly higher class preempts."""
    is_preemptible: Flag
    """What a job of this class is unless it says otherwise."""


class QuotaSpec(Wire):
    """The most devices that some jobs may hold together; without a project or a class it counts all of them."""

    max_devices: Count
    project: Name | None = None
    priority_class: Name | None = None


class ProjectShareSpec(Wire):
    """What a project is entitled to beside others: the devices it deserves, then its weight's part of the rest."""

    deserved_devices: Count = 0
    weight: Annotated[float, Field(gt=0, allow_inf_nan=False, strict=True)] = 1.0


def _default_classes() -> dict[str, PriorityClassSpec]:
    return {
        "critical": PriorityClassSpec(priority=1000, is_preemptible=False),
        "normal": PriorityClassSpec(priority=500, is_preemptible=True),
        "exploratory": PriorityClassSpec(priority=100, is_preemptible=True),
    }


class PolicySpec(Wire):
    """Meanings of the fields: docs/scheduling.md; `runtime.scheduling.policy` has the same ones."""

    classes: Annotated[dict[Name, PriorityClassSpec], Field(min_length=1)] = Field(default_factory=_default_classes)
    quotas: tuple[QuotaSpec, ...] = ()
    projects: dict[Name, ProjectShareSpec] = Field(default_factory=dict)
    fair_share_max_s: Seconds = 604800.0
    min_run_s: Seconds = 0.0
    preempt_burst: Factor = 2.0
    preempt_per_hour: Factor = 8.0
    max_stalled: Annotated[int, Field(ge=1, strict=True)] = 3
    max_infrastructure_retries: Count = 3
    retry_backoff_s: Seconds = 5.0
    retry_backoff_max_s: Seconds = 300.0
    overtaking: Factor = 1.0
    overtaking_max_s: Seconds = 86400.0
    backfill_patience_s: Seconds = 604800.0
    disk_quota_gb: Factor = 0.0
    gc_every_hours: Factor = 0.0
    log_cap_mb: Annotated[int, Field(ge=1, le=1024 * 1024, strict=True)] = 256
    hang_least_s: Annotated[Seconds, Field(ge=1.0)] = 600.0
    hang_factor: Factor = 10.0

    @model_validator(mode="after")
    def _quotas_name_classes_that_exist(self) -> Self:
        for quota in self.quotas:
            if quota.priority_class is not None and quota.priority_class not in self.classes:
                known = ", ".join(self.classes)
                raise ValueError(f"a quota names the class {quota.priority_class!r}, which is none of {known}")
        return self
