"""Which quota holds a job back. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

from runtime.model.nouns import Job

from .asking import describe_shape
from .policy import Quota


def too_small(quotas: Iterable[Quota], project: str, priority_class: str, n_devices: int) -> Quota | None:
    """A quota under which so many devices can never be had; None: there is none."""
    covering = (quota for quota in quotas if quota.covers(project, priority_class))
    return next((quota for quota in covering if quota.max_devices < n_devices), None)


def used_up(
    quotas: Iterable[Quota], in_use: Mapping[tuple[str, str], int], closed: Set[Quota], job: Job
) -> Quota | None:
    """A quota that has no room for this job now.

    Args:
        in_use: Devices held, by project and priority class.
        closed: Quotas for whose room an earlier job waits.
    """
    for quota in quotas:
        if quota.covers(job.project, job.priority_class):
            is_full = n_in_use(quota, in_use) + job.shape.n_devices > quota.max_devices
            if is_full or quota in closed:
                return quota
    return None


def n_in_use(quota: Quota, in_use: Mapping[tuple[str, str], int]) -> int:
    """Devices that count against it."""
    return sum(n for (project, priority_class), n in in_use.items() if quota.covers(project, priority_class))


def describe_quota(quota: Quota) -> str:
    """`project vision may hold 4 devices in class exploratory`."""
    who = f"project {quota.project}" if quota.project else "all projects together"
    what = f" in class {quota.priority_class}" if quota.priority_class else ""
    noun = "device" if quota.max_devices == 1 else "devices"
    return f"{who} may hold {quota.max_devices} {noun}{what}"


def explain_quota(quota: Quota, in_use: Mapping[tuple[str, str], int], job: Job) -> str:
    """`a quota holds it back: ...`."""
    if job.shape.n_devices > quota.max_devices:
        return f"it can not start under a quota: {describe_quota(quota)}, and it asks for {describe_shape(job.shape)}"
    return f"a quota holds it back: {describe_quota(quota)}, and {n_in_use(quota, in_use)} of them are in use"
