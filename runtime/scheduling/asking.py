"""What a job asks for, in words, and which node can not give it, and why. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from runtime.model.devices import KindMasks
from runtime.model.ground import UNBOUND
from runtime.model.indexes import Indexes
from runtime.model.nouns import WHOLE, Needs, Placement, Shape

from .fit import PLAIN, fits, kinds_of, unit_of, usable
from .room import Room, empty_room

MAX_NODES = 8
"""Named in one sentence."""


def impossible(shape: Shape, kinds: Mapping[str, KindMasks], index: Indexes) -> str | None:
    """Why a gang of this shape can not even run on an empty cluster; None: it can."""
    unit = shape.devices_per_node
    needs = shape.needs or PLAIN
    if shape.n_devices < 1 and not (needs.cpu_milli or needs.memory_mb):
        return f"asks for {shape.n_devices} devices; the least is 1, or 0 with cores or memory"
    if shape.n_devices < 1 and needs.is_exclusive:
        return "asks for no device and is exclusive; an exclusive job has the cores of its devices, so ask for one"
    if unit is not None and (unit < 1 or shape.n_devices % unit):
        return f"asks for {shape.n_devices} devices in groups of {unit} per node: not a whole number of groups"
    if fits(shape, empty_room(index, usable(shape, kinds, index))):
        return None
    why = f"asks for {describe_shape(shape)}; the cluster has {describe_devices(kinds)}"
    if shape.needs is None:
        return why
    lacking = [f"{node_id} {lack}" for node_id in sorted(kinds) if (lack := lacks(shape, kinds, index, node_id))]
    more = f"; {len(lacking) - MAX_NODES} nodes more" if len(lacking) > MAX_NODES else ""
    return "; ".join([why, *lacking[:MAX_NODES]]) + more


def lacks(shape: Shape, kinds: Mapping[str, KindMasks], index: Indexes, node_id: str) -> str | None:
    """Why a node can not carry any part of such a gang, even when it is empty; None: it can.

    `has 4 cores (asked: 8)`.
    """
    if node_id in usable(shape, {node_id: kinds[node_id]}, index):
        return None
    found = "; ".join(_lacking(shape, kinds[node_id], index, node_id))
    return found or f"has no devices for it ({_kinds(kinds[node_id])})"


def _lacking(shape: Shape, masks: KindMasks, index: Indexes, node_id: str) -> Iterator[str]:
    """Each test that it fails."""
    needs, ground, unit = shape.needs or PLAIN, index.grounds[node_id], unit_of(shape)
    mask = 0
    for kind in kinds_of(shape):
        mask |= masks.get(kind, 0)
    if not mask or mask.bit_count() < unit:
        yield f"has no devices for it ({_kinds(masks)})"
        return
    large = sum(devices for size, devices in ground.device_memory if size >= needs.device_memory_mb) & mask
    if needs.device_memory_mb and large.bit_count() < unit:
        most = max((size for size, devices in ground.device_memory if devices & mask), default=None)
        told = "devices of unknown memory" if most is None else f"devices of {memory(most)}"
        yield f"has {told} (asked: {memory(needs.device_memory_mb)})"
    if needs.cpu_milli > ground.cpu_milli:
        yield f"has {cores(ground.cpu_milli)} (asked: {cores(needs.cpu_milli)})"
    if needs.memory_mb > ground.memory_mb:
        yield f"has {memory(ground.memory_mb)} of memory (asked: {memory(needs.memory_mb)})"
    if needs.is_exclusive and not any(g.devices & ~mask == 0 for g in ground.core_groups):
        yield "has no such device that shares its cores with none of another kind"


def left_over(shape: Shape, free: Room, node_id: str) -> str:
    """What nobody was promised of the cores and the memory that it asks for: `1.5 cores left (asked: 2 cores)`."""
    needs = shape.needs or PLAIN
    found = []
    if needs.cpu_milli:
        found.append(f"{cores(free.cpu_left(node_id))} left (asked: {cores(needs.cpu_milli)})")
    if needs.memory_mb:
        found.append(f"{memory(free.memory_left(node_id))} of memory left (asked: {memory(needs.memory_mb)})")
    return "; ".join(found)


def describe_shape(shape: Shape) -> str:
    """`8 H100 devices`, `1 device with 4 cores`, `16 H100 devices in groups of 8 per node`, `30 % of one device`."""
    needs = shape.needs or PLAIN
    kind = " or ".join(kind for kind in kinds_of(shape) if kind)
    kind = f"{kind} " if kind else ""
    noun = "device" if shape.n_devices == 1 else "devices"
    what = f"{shape.n_devices} {kind}{noun}"
    if needs.device_thousandths < WHOLE:
        what = f"{needs.device_thousandths / 10:g} % of one {kind}device"
    if shape.devices_per_node:
        what += f" in groups of {shape.devices_per_node} per node"
    extras = list(_extras(shape, needs))
    if not shape.n_devices:
        return " and ".join(extras)
    return f"{what} with {' and '.join(extras)}" if extras else what


def _extras(shape: Shape, needs: Needs) -> Iterator[str]:
    each = "" if shape.n_devices in (0, 1) else f" for each {'group' if shape.devices_per_node else 'device'}"
    if needs.device_memory_mb:
        yield f"{memory(needs.device_memory_mb)} of device memory"
    if needs.cpu_milli:
        yield f"{cores(needs.cpu_milli)}{each}"
    if needs.memory_mb:
        yield f"{memory(needs.memory_mb)} of memory{each}"
    if needs.is_exclusive:
        yield "nothing else on its devices and their cores"


def describe_devices(kinds: Mapping[str, KindMasks]) -> str:
    """`8 H100 on a, 4 cpu on b`, or `no devices`."""
    parts = [
        f"{mask.bit_count()} {kind} on {node_id}"
        for node_id in sorted(kinds)
        for kind, mask in sorted((k, m) for k, m in kinds[node_id].items() if k is not None)
    ]
    return ", ".join(parts) or "no devices"


def describe_placements(placements: tuple[Placement, ...]) -> str:
    """`a:0,1 b:0`; `a:0 (30 %)` for a share, `a (4 cores)` without devices."""
    return " ".join(_describe_part(part) for part in placements)


def _describe_part(part: Placement) -> str:
    if not part.devices:
        return f"{part.node_id} ({cores(part.cpu_milli)})"
    where = f"{part.node_id}:{','.join(str(device) for device in part.devices)}"
    return where if part.device_thousandths == WHOLE else f"{where} ({part.device_thousandths / 10:g} %)"


def _kinds(masks: KindMasks) -> str:
    return ", ".join(f"{mask.bit_count()} {kind}" for kind, mask in masks.items() if kind is not None) or "no devices"


def cores(milli: int) -> str:
    if milli > UNBOUND // 2:
        return "any number of cores"
    return "1 core" if milli == 1000 else f"{milli / 1000:g} cores"


def memory(size_mb: int) -> str:
    if size_mb > UNBOUND // 2:
        return "any amount"  # The node does not say how much it has, and binds nobody.
    gigabytes = size_mb * 2**20 / 1e9
    return f"{gigabytes:.4g} GB" if gigabytes >= 1 else f"{size_mb} MiB"
