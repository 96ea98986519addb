"""What attempts hold besides whole devices, computed anew in the plainest way: shares, cores, memory. Pure and slow.

Part of `check`.
"""

from __future__ import annotations

from collections.abc import Iterator

from .errors import InvariantViolation
from .ground import ground_of
from .indexes import Indexes
from .nouns import WHOLE, Job, Node, Placement
from .state import State


def index_amounts(slow: Indexes, state: State) -> None:
    """Fill in the indexes of amounts from nothing but jobs and nodes."""
    for job in state.jobs.values():
        slow.n_alive[job.shape] = slow.n_alive.get(job.shape, 0) + 1
    for node_id, node in state.nodes.items():
        slow.grounds[node_id] = ground_of(node)
    for _, part in parts(state):
        if part.device_thousandths < WHOLE:
            used = slow.used_shares.setdefault(part.node_id, {})
            for device in part.devices:
                used[device] = used.get(device, 0) + part.device_thousandths
        if part.cpu_milli:
            slow.used_cpu[part.node_id] = slow.used_cpu.get(part.node_id, 0) + part.cpu_milli
        if part.memory_mb:
            slow.used_memory[part.node_id] = slow.used_memory.get(part.node_id, 0) + part.memory_mb


def check_amounts(state: State) -> None:
    """Verify that no node has given out more than it has, and that exclusive attempts are alone.

    Raises:
        InvariantViolation: the first rule that does not hold, and what was found.
    """
    for node in state.nodes.values():
        here = [(job, part) for job, part in parts(state) if part.node_id == node.node_id]
        cpu_milli = sum(part.cpu_milli for _, part in here)
        memory_mb = sum(part.memory_mb for _, part in here)
        _require(
            not node.cpus or cpu_milli <= node.cpus * 1000,
            "no core is given out twice",
            f"{node.node_id}: {cpu_milli} thousandths of {node.cpus} cores",
        )
        _require(
            not node.memory_mb or memory_mb <= node.memory_mb,
            "no memory is given out twice",
            f"{node.node_id}: {memory_mb} of {node.memory_mb} MiB",
        )
        for device in node.devices:
            given = [
                part.device_thousandths if device.index in part.devices else WHOLE
                for _, part in here
                if device.index in (*part.devices, *part.kept)
            ]
            found = f"{node.node_id}:{device.index}: {given}"
            _require(sum(given) <= WHOLE, "no part of a device is given out twice", found)
        _check_exclusive(node, here)


def _check_exclusive(node: Node, here: list[tuple[Job, Placement]]) -> None:
    for job, part in here:
        if job.shape.needs is None or not job.shape.needs.is_exclusive:
            continue
        own = _cores_of(node, part)
        for other, others in here:
            shared = own & _cores_of(node, others) if other.job_id != job.job_id else set()
            found = f"cores {sorted(shared)} of {node.node_id}: {job.job_id} and {other.job_id}"
            _require(not shared, "an exclusive attempt is alone on its cores", found)


def _cores_of(node: Node, part: Placement) -> set[int]:
    """Cores that belong to its devices."""
    order = sorted(device.index for device in node.devices)
    found: set[int] = set()
    for place, index in enumerate(order):
        if index in part.devices:
            first = place * node.cpus // len(order)
            found |= set(range(first, max((place + 1) * node.cpus // len(order), first + min(1, node.cpus))))
    return found


def parts(state: State) -> Iterator[tuple[Job, Placement]]:
    """All that attempts hold."""
    for job in state.jobs.values():
        for part in job.attempt.placements if job.attempt is not None else ():
            yield job, part


def _require(is_true: bool, rule: str, found: str) -> None:
    if not is_true:
        raise InvariantViolation(rule=rule, found=found)
