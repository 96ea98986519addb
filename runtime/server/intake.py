"""From the wire to the core: a `JobSpec` becomes a queued `Job`, or is refused with what is allowed. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from runtime.model.nouns import WHOLE, Job, Needs, Shape, Worth
from runtime.model.silence import NEVER
from runtime.model.states import OnTimeout
from runtime.scheduling.policy import Policy, PriorityClass
from runtime_client.doors.refusal import refused
from runtime_client.models import Compute, ErrorKind, JobSpec

from .refusal import suggestion

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
        finish_by_s=spec.finish_by,
        hang_after_s=NEVER if spec.hang_minutes == "off" else _seconds(spec.hang_minutes),
        worth=None
        if spec.worth is None
        else Worth(gain=spec.worth.gain, uncertainty=spec.worth.uncertainty, cost_s=spec.worth.cost_s),
    )


def shape_of(compute: Compute, kinds: Iterable[str]) -> Shape:
    """What `compute` asks for: `H100` takes any H100, `GPU_8xH100` whole groups of eight on each node.

    One accelerator (the default) of a grouped type means one group.

    Raises:
        Refused: the number of accelerators is not a multiple of the group, or the types differ in their groups.
    """
    known = tuple(kinds)
    names, group = _types(compute)
    accepted = tuple(dict.fromkeys(_known_kind(name, known) for name in names))
    n_devices = compute.num_accelerators if group is None else _whole_groups(compute, names[0], group)
    if group is not None and compute.accelerator_share not in (None, 1):
        raise refused(
            ErrorKind.INVALID,
            "share_of_a_group",
            f"compute.accelerator_share: only a job of one accelerator takes a share, and {compute.accelerator_type} "
            f"stands for {group}; use the accelerator_type {names[0]}",
            path="compute.accelerator_share",
        )
    return Shape(
        n_devices=n_devices,
        accelerator=accepted[0] if accepted else None,
        devices_per_node=group,
        needs=_needs(compute, accepted[1:]),
    )


def _types(compute: Compute) -> tuple[list[str], int | None]:
    """The device models that will do, and the group that they come in."""
    wanted = [] if compute.accelerator_type is None else compute.accelerator_type.split("|")
    names: list[str] = []
    groups: list[int | None] = []
    for text in (name.strip() for name in wanted):
        grouped = _GROUPED.fullmatch(text)
        names.append(text if grouped is None else grouped["kind"])
        groups.append(None if grouped is None else int(grouped["n"]))
    if not all(names) or len(set(groups)) > 1:
        raise refused(
            ErrorKind.INVALID,
            "unequal_types",
            f"compute.accelerator_type: {compute.accelerator_type!r} is no list of like types; use such as "
            "`H100|A100`, or `GPU_8xH100|GPU_8xA100`",
            path="compute.accelerator_type",
        )
    return names, groups[0] if groups else None


def _needs(compute: Compute, others: tuple[str, ...]) -> Needs | None:
    needs = Needs(
        or_accelerators=others,
        device_memory_mb=_rounded_up((compute.accelerator_memory_gb or 0) * 1e9 / 2**20),
        device_thousandths=WHOLE if compute.accelerator_share is None else round(compute.accelerator_share * WHOLE),
        cpu_milli=_rounded_up((compute.cpus or 0) * 1000),
        memory_mb=_rounded_up((compute.memory_gb or 0) * 1e9 / 2**20),
        is_exclusive=compute.exclusive,
    )
    return None if needs == Needs() else needs


def _rounded_up(amount: float) -> int:
    return math.ceil(round(amount, 3))


def _whole_groups(compute: Compute, kind: str, group: int) -> int:
    n_devices = group if compute.num_accelerators == 1 else compute.num_accelerators
    if n_devices % group:
        raise refused(
            ErrorKind.INVALID,
            "not_whole_groups",
            f"compute.num_accelerators: {n_devices} is not a multiple of {group}, the devices on each node that "
            f"{compute.accelerator_type} stands for; use {group} or {2 * group}, or the accelerator_type {kind}",
            path="compute.num_accelerators",
        )
    return n_devices


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
