"""Whether a gang fits, and where it goes. Pure.

Fitting is decided exactly by counting: a node carries as many groups of a gang as the scarcest of its devices, cores
and memory allows. So it is monotone: more room never makes a fit fail. Placing is best-fit: fewest nodes, then the
tightest ones, so that large gaps stay whole; ties go by node name. Where shares of devices, cores or memory are at
stake, a gang that one node can carry goes where it spoils the least (`fragments`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from runtime.model.devices import KindMasks, Masks, indexes_of, lowest
from runtime.model.ground import UNBOUND, CoreGroup
from runtime.model.indexes import Indexes
from runtime.model.nouns import WHOLE, Needs, Placement, Shape

from .fragments import Typical
from .room import Face, Room, empty_room, face

PLAIN = Needs()
MANY = 1 << 30


def kinds_of(shape: Shape) -> tuple[str | None, ...]:
    """Device kinds that will do, best first; None: any."""
    if shape.needs is None or not shape.needs.or_accelerators:
        return (shape.accelerator,)
    return (shape.accelerator, *shape.needs.or_accelerators)


def uses_amounts(shape: Shape) -> bool:
    """Whether it takes cores or memory that others could want."""
    needs = shape.needs
    return needs is not None and bool(needs.cpu_milli or needs.memory_mb or needs.is_exclusive)


def usable(shape: Shape, kinds: Mapping[str, KindMasks], index: Indexes) -> Masks:
    """All devices that a gang of this shape could ever hold, by node; nodes that can not carry a part are left out."""
    if shape.needs is not None:
        return _usable_by_needs(shape, kinds, index)
    per_node = unit_of(shape)
    found = {}
    for node_id, masks in kinds.items():
        mask = masks.get(shape.accelerator, 0)
        if mask and mask.bit_count() >= per_node:
            found[node_id] = mask
    return found


def _usable_by_needs(shape: Shape, kinds: Mapping[str, KindMasks], index: Indexes) -> Masks:
    found: Masks = {}
    if not shape.n_devices and (shape.needs or PLAIN).is_exclusive:
        return found
    for node_id, masks in kinds.items():
        mask = 0
        for kind in kinds_of(shape):
            of_kind = _suitable(shape, masks.get(kind, 0), index, node_id)
            if of_kind and groups_on(shape, empty_room(index, {node_id: of_kind}), node_id):
                mask |= of_kind
        if mask:
            found[node_id] = mask
    return found


def _suitable(shape: Shape, mask: int, index: Indexes, node_id: str) -> int:
    """Those of these devices that have the memory, or the cores for themselves."""
    needs = shape.needs or PLAIN
    ground = index.grounds[node_id]
    if needs.device_memory_mb:
        large = 0
        for size, devices in ground.device_memory:
            large |= devices if size >= needs.device_memory_mb else 0
        mask &= large
    if needs.is_exclusive:
        return sum(group.devices for group in ground.core_groups if group.devices & ~mask == 0)
    return mask


def includes(shape: Shape, other: Shape) -> bool:
    """Whether every device that `other` could use is one that `shape` could use, whatever nodes there are."""
    if shape.needs is not None:
        return shape == other
    has_kinds = shape.accelerator is None or kinds_of(other) == (shape.accelerator,)
    return has_kinds and not uses_amounts(other) and 0 < unit_of(shape) <= unit_of(other)


def is_gang(shape: Shape) -> bool:
    """Whether one bad device would spoil the work of others."""
    return shape.n_devices > 1


def unit_of(shape: Shape) -> int:
    """Devices of a group; all of a group are on one node."""
    return shape.devices_per_node or min(1, shape.n_devices)


def n_groups(shape: Shape) -> int:
    """How many whole groups the gang has."""
    return shape.n_devices // unit_of(shape) if shape.n_devices else 1


def groups_on(shape: Shape, room: Room, node_id: str, kind: str | None = None) -> int:
    """How many groups of the gang a node can carry, where all devices in the room are ones that it may use.

    Args:
        kind: count only devices of this kind; None: all.
    """
    mask = room.devices.get(node_id, 0)
    if kind is not None:
        mask &= room.index.kinds[node_id].get(kind, 0)
    unit = unit_of(shape)
    needs = shape.needs
    if needs is None:
        return mask.bit_count() // unit
    if needs.is_exclusive:
        n = _exclusive_groups(shape, needs, room, node_id, mask)
    elif not unit:
        n = MANY if node_id in room.devices else 0
    else:
        n = mask.bit_count() // unit
    if needs.device_thousandths < WHOLE:
        n += len(_parts(needs, room, node_id, kind))
    if needs.cpu_milli and not needs.is_exclusive:
        n = min(n, room.cpu_left(node_id) // needs.cpu_milli)
    if needs.memory_mb:
        n = min(n, room.memory_left(node_id) // needs.memory_mb)
    return max(0, n)


def _parts(needs: Needs, room: Room, node_id: str, kind: str | None) -> list[int]:
    """Partly used devices on which a share is left, those with the least first."""
    left = room.shares.get(node_id)
    if not left:
        return []
    of_kind = -1 if kind is None else room.index.kinds[node_id].get(kind, 0)
    found = [(n, d) for d, n in left.items() if n >= needs.device_thousandths and of_kind >> d & 1]
    return [device for _, device in sorted(found)]


def _core_groups(room: Room, node_id: str, mask: int) -> Iterable[CoreGroup]:
    """Those that an exclusive job may have: wholly free, as long as there are cores that nobody was promised."""
    left = room.cpu_left(node_id)
    for group in room.index.grounds[node_id].core_groups:
        if group.devices & ~mask == 0 and group.cpu_milli <= left:
            left -= group.cpu_milli
            yield group


def _exclusive_groups(shape: Shape, needs: Needs, room: Room, node_id: str, mask: int) -> int:
    n_devices = cpu_milli = 0
    for group in _core_groups(room, node_id, mask):
        n_devices += group.devices.bit_count()
        cpu_milli += group.cpu_milli
    n = n_devices // unit_of(shape)
    if needs.cpu_milli and room.index.grounds[node_id].cpu_milli < UNBOUND:
        n = min(n, cpu_milli // needs.cpu_milli)
    return n


def fits(shape: Shape, room: Room) -> bool:
    """Whether the whole gang fits in this room (each device of a kind that the shape may use)."""
    if shape.n_devices % (unit_of(shape) or 1):
        return False
    return any(_fits_of(shape, room, kind) for kind in kinds_tried(shape))


def kinds_tried(shape: Shape) -> tuple[str | None, ...]:
    """Kinds that have to be counted apart, best first; None: all devices that it may use together."""
    kinds = kinds_of(shape)
    return kinds if len(kinds) > 1 else (None,)


def _fits_of(shape: Shape, room: Room, kind: str | None) -> bool:
    needed = n_groups(shape)
    if shape.needs is None:
        unit = unit_of(shape)
        for mask in room.devices.values():
            needed -= mask.bit_count() // unit
            if needed <= 0:
                return True
        return False
    for node_id in nodes_of(shape, room):
        needed -= groups_on(shape, room, node_id, kind)
        if needed <= 0:
            return True
    return False


def nodes_of(shape: Shape, room: Room) -> Iterable[str]:
    if room.shares and shape.needs is not None and shape.needs.device_thousandths < WHOLE:
        return room.devices.keys() | room.shares.keys()
    return room.devices


def place(shape: Shape, room: Room, typical: Typical | None = None) -> tuple[Placement, ...] | None:
    """Where the whole gang goes; None: it does not fit.

    Args:
        typical: what else is wanted on these nodes, so that a gang on one node goes where it spoils the least.
    """
    for kind in kinds_tried(shape):
        if fits(shape, room) if kind is None else _fits_of(shape, room, kind):
            return _place_on(shape, room, kind, typical)
    return None


def _place_on(shape: Shape, room: Room, kind: str | None, typical: Typical | None) -> tuple[Placement, ...]:
    needed = n_groups(shape)
    if typical is not None:
        best = typical.least_spoiled(room, _single_placements(shape, room, kind, needed, typical))
        if best is not None:
            return (best,)
    n_on = {node_id: groups_on(shape, room, node_id, kind) for node_id in nodes_of(shape, room)}
    tight = sorted((_n_free(room, node_id), node_id) for node_id, n in n_on.items() if n)
    chosen: dict[str, int] = {}
    while needed:
        largest = max(tight, key=lambda entry: n_on[entry[1]])
        entry = next((entry for entry in tight if n_on[entry[1]] >= needed), largest)
        chosen[entry[1]] = min(needed, n_on[entry[1]])
        needed -= chosen[entry[1]]
        tight.remove(entry)
    placements = []
    rank = 0
    for node_id in sorted(chosen):
        part = _part(shape, room, node_id, kind, chosen[node_id], rank)
        placements.append(part)
        rank += len(part.devices)
    return tuple(placements)


def _n_free(room: Room, node_id: str) -> int:
    return room.devices.get(node_id, 0).bit_count()


def _single_placements(
    shape: Shape, room: Room, kind: str | None, needed: int, typical: Typical
) -> Iterable[Placement]:
    """The whole gang on one node, once for each of the nodes that differ; a share also on each part of a device."""
    for node_id in _different_nodes(shape, room, kind, typical):
        if groups_on(shape, room, node_id, kind) >= needed:
            if (shape.needs or PLAIN).device_thousandths < WHOLE:
                yield from _share_placements(shape, room, node_id, kind)
            else:
                yield _part(shape, room, node_id, kind, needed, 0)


def _different_nodes(shape: Shape, room: Room, kind: str | None, typical: Typical) -> Iterable[str]:
    """Of nodes on which the same is left for the same work, the first by name."""
    is_by_device = kind is not None or (shape.needs or PLAIN).is_exclusive
    first: dict[tuple[int, int, Face], str] = {}
    for node_id in nodes_of(shape, room):
        key = (typical.users(node_id), room.devices.get(node_id, 0) if is_by_device else 0, face(room, node_id))
        if first.setdefault(key, node_id) > node_id:
            first[key] = node_id
    return first.values()


def _share_placements(shape: Shape, room: Room, node_id: str, kind: str | None) -> Iterable[Placement]:
    """One for each amount that is left of a device there."""
    needs = shape.needs or PLAIN
    seen = set()
    for device in _parts(needs, room, node_id, kind):
        left = room.left_of(node_id, device)
        if left not in seen:
            seen.add(left)
            yield _on_device(needs, node_id, device)
    mask = room.devices.get(node_id, 0) & (-1 if kind is None else room.index.kinds[node_id].get(kind, 0))
    if mask:
        yield _on_device(needs, node_id, indexes_of(lowest(mask, 1))[0])


def _on_device(needs: Needs, node_id: str, device: int) -> Placement:
    return Placement(
        node_id=node_id,
        devices=(device,),
        first_rank=0,
        device_thousandths=needs.device_thousandths,
        cpu_milli=needs.cpu_milli,
        memory_mb=needs.memory_mb,
    )


def _part(shape: Shape, room: Room, node_id: str, kind: str | None, n: int, rank: int) -> Placement:
    """`n` groups on a node that can carry them."""
    mask = room.devices.get(node_id, 0)
    if kind is not None:
        mask &= room.index.kinds[node_id].get(kind, 0)
    n_devices = n * unit_of(shape)
    needs = shape.needs
    if needs is None:
        return Placement(node_id=node_id, devices=indexes_of(lowest(mask, n_devices)), first_rank=rank)
    if needs.device_thousandths < WHOLE:
        return next(iter(_share_placements(shape, room, node_id, kind)))
    cpu_milli, kept = n * needs.cpu_milli, 0
    if needs.is_exclusive:
        taken = cpu_taken = 0
        for group in _core_groups(room, node_id, mask):
            if taken.bit_count() >= n_devices and cpu_taken >= cpu_milli:
                break
            taken |= group.devices
            cpu_taken += group.cpu_milli
        mask, cpu_milli = taken, cpu_taken
        kept = mask & ~lowest(mask, n_devices)
    return Placement(
        node_id=node_id,
        devices=indexes_of(lowest(mask, n_devices)),
        first_rank=rank,
        kept=indexes_of(kept),
        cpu_milli=cpu_milli,
        memory_mb=n * needs.memory_mb,
    )
