"""Whether a gang fits, and where it goes. Pure.

Fitting is decided exactly by counting, so it is monotone: more free devices never make a fit fail. Placing is
best-fit: fewest nodes, then the tightest ones, so that large gaps stay whole; ties go by node name.
"""

from __future__ import annotations

from collections.abc import Mapping

from runtime.model.devices import KindMasks, Masks, indexes_of, lowest
from runtime.model.nouns import Placement, Shape


def usable(shape: Shape, kinds: Mapping[str, KindMasks]) -> Masks:
    """All devices that a gang of this shape could ever hold, by node; nodes that can not carry a part are left out."""
    per_node = _unit(shape)
    found = {}
    for node_id, masks in kinds.items():
        mask = masks.get(shape.accelerator, 0)
        if mask and mask.bit_count() >= per_node:
            found[node_id] = mask
    return found


def includes(shape: Shape, other: Shape) -> bool:
    """Whether every device that `other` could use is one that `shape` could use, whatever nodes there are."""
    return shape.accelerator in (None, other.accelerator) and _unit(shape) <= _unit(other)


def is_gang(shape: Shape) -> bool:
    """Whether one bad device would spoil the work of others."""
    return shape.n_devices > 1


def n_groups(shape: Shape) -> int:
    """How many whole groups the gang has."""
    return shape.n_devices // _unit(shape)


def fits(shape: Shape, available: Mapping[str, int]) -> bool:
    """Whether the whole gang fits on these devices (each of a kind that the shape may use)."""
    unit = _unit(shape)
    if shape.n_devices % unit:
        return False
    needed = n_groups(shape)
    for mask in available.values():
        needed -= mask.bit_count() // unit
        if needed <= 0:
            return True
    return False


def place(shape: Shape, available: Mapping[str, int]) -> tuple[Placement, ...] | None:
    """Devices for the whole gang, fewest nodes first, then tightest; None: it does not fit."""
    if not fits(shape, available):
        return None
    unit = _unit(shape)
    room = sorted(((mask.bit_count(), node_id) for node_id, mask in available.items() if mask.bit_count() >= unit))
    needed = n_groups(shape)
    chosen: dict[str, int] = {}
    while needed:
        largest = max(room, key=lambda entry: entry[0] // unit)
        count, node_id = next((entry for entry in room if entry[0] // unit >= needed), largest)
        taken = min(needed, count // unit)
        chosen[node_id] = taken * unit
        needed -= taken
        room.remove((count, node_id))
    placements = []
    rank = 0
    for node_id in sorted(chosen):
        devices = indexes_of(lowest(available[node_id], chosen[node_id]))
        placements.append(Placement(node_id=node_id, devices=devices, first_rank=rank))
        rank += len(devices)
    return tuple(placements)


def impossible(shape: Shape, kinds: Mapping[str, KindMasks]) -> str | None:
    """Why a gang of this shape can not even run on an empty cluster; None: it can."""
    unit = shape.devices_per_node
    if shape.n_devices < 1:
        return f"asks for {shape.n_devices} devices; the least is 1"
    if unit is not None and (unit < 1 or shape.n_devices % unit):
        return f"asks for {shape.n_devices} devices in groups of {unit} per node: not a whole number of groups"
    if fits(shape, usable(shape, kinds)):
        return None
    return f"asks for {describe_shape(shape)}; the cluster has {describe_devices(kinds)}"


def describe_shape(shape: Shape) -> str:
    """`8 H100 devices`, `1 device`, `16 H100 devices in groups of 8 per node`."""
    kind = f"{shape.accelerator} " if shape.accelerator else ""
    noun = "device" if shape.n_devices == 1 else "devices"
    groups = f" in groups of {shape.devices_per_node} per node" if shape.devices_per_node else ""
    return f"{shape.n_devices} {kind}{noun}{groups}"


def describe_devices(kinds: Mapping[str, KindMasks]) -> str:
    """`8 H100 on a, 4 cpu on b`, or `no devices`."""
    parts = [
        f"{mask.bit_count()} {kind} on {node_id}"
        for node_id in sorted(kinds)
        for kind, mask in sorted((k, m) for k, m in kinds[node_id].items() if k is not None)
    ]
    return ", ".join(parts) or "no devices"


def describe_placements(placements: tuple[Placement, ...]) -> str:
    """`a:0,1 b:0`."""
    return " ".join(f"{p.node_id}:{','.join(str(d) for d in p.devices)}" for p in placements)


def _unit(shape: Shape) -> int:
    return shape.devices_per_node or 1
