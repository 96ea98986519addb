"""From the wire to the core: a `JobSpec` becomes a queued `Job`, or is refused with what is allowed. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from runtime.model.nouns import Job, Shape
from runtime.model.silence import NEVER
from runtime.model.states import OnTimeout
from runtime.scheduling.policy import Policy, PriorityClass
from runtime_client.models import Compute, ErrorKind, JobSpec

from .refusal import refused, suggestion

_GROUPED = re.compile(r"GPU_(?P<n>[1-9][0-9]{0,4})x(?P<kind>.+)", re.IGNORECASE)


def job_number(job_id: str) -> int | None:
    """The number in `j17`; None when it is no job id."""
    digits = job_id[1:]
    if job_id[:1] != "j" or not (digits.isascii() and digits.isdigit()) or len(digits) > 18:
        return None
    return int(digits)


def job_from_spec(spec: JobSpec, *, number: int, now_s: float, policy: Policy, kinds: Iterable[str]) -> Job:
    """The job as the scheduler will see it.

    Args:
        kinds: device kinds of the nodes that are there, for names that differ only in case.

    Raises:
        Refused: the priority class is unknown, or the devices asked for contradict each other.
    """
    cls = _priority_class(spec.priority_class, policy)
    return Job(
        job_id=f"j{number}",
        order=number,
        project=spec.project,
        experiment=spec.experiment_name,
        session_id=None if spec.session is None else spec.session.session_id,
        priority_class=cls.name,
        priority=cls.priority,
        is_preemptible=cls.is_preemptible if spec.preemptible is None else spec.preemptible,
        shape=shape_of(spec.compute, kinds),
        submitted_at_s=now_s,
        queued_since_s=now_s,
        grace_s=spec.grace_seconds,
        max_retries=spec.max_retries,
        timeout_s=_seconds(spec.timeout_minutes),
        on_timeout=OnTimeout(spec.on_timeout.value),
        max_total_s=_seconds(spec.max_total_minutes),
        queue_timeout_s=_seconds(spec.queue_timeout_minutes),
        hang_after_s=NEVER if spec.hang_minutes == "off" else _seconds(spec.hang_minutes),
    )


def shape_of(compute: Compute, kinds: Iterable[str]) -> Shape:
    """What `compute` asks for: `H100` takes any H100, `GPU_8xH100` whole groups of eight on each node.

    One accelerator (the default) of a grouped type means one group.

    Raises:
        Refused: the number of accelerators is not a multiple of the group.
    """
    wanted = compute.accelerator_type
    if wanted is None:
        return Shape(n_devices=compute.num_accelerators)
    grouped = _GROUPED.fullmatch(wanted)
    if grouped is None:
        return Shape(n_devices=compute.num_accelerators, accelerator=_known_kind(wanted, kinds))
    group = int(grouped["n"])
    n_devices = group if compute.num_accelerators == 1 else compute.num_accelerators
    if n_devices % group:
        raise refused(
            ErrorKind.INVALID,
            "not_whole_groups",
            f"compute.num_accelerators: {n_devices} is not a multiple of {group}, the devices on each node that "
            f"{wanted} stands for; use {group} or {2 * group}, or the accelerator_type {grouped['kind']}",
            path="compute.num_accelerators",
        )
    return Shape(n_devices=n_devices, accelerator=_known_kind(grouped["kind"], kinds), devices_per_node=group)


def _known_kind(name: str, kinds: Iterable[str]) -> str:
    return next((kind for kind in kinds if kind.lower() == name.lower()), name)


def _priority_class(name: str, policy: Policy) -> PriorityClass:
    found = policy.classes.get(name)
    if found is None:
        known = ", ".join(policy.classes)
        raise refused(
            ErrorKind.INVALID,
            "unknown_priority_class",
            f"priority_class: {name!r} is unknown{suggestion(name, policy.classes)}; it is one of {known}",
            path="priority_class",
        )
    return found


def _seconds(minutes: float | None) -> float | None:
    return None if minutes is None else minutes * 60.0
