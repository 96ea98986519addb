"""What is left on the nodes: whole devices, parts of devices, cores and memory. Pure.

Shapes that ask for devices alone are decided by the masks of whole devices; the rest is looked at only for those that
ask for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from runtime.model.devices import Masks, placement_mask
from runtime.model.indexes import Indexes
from runtime.model.nouns import WHOLE, Placement, Shape

Face = tuple[int, int, int, tuple[int, ...]]
"""Number of whole devices, cores and memory left, parts of devices: nodes with equal faces are equally good."""


@dataclass(slots=True, kw_only=True)
class Room:
    index: Indexes
    """For what the nodes are; what is used there is told by the other fields."""
    devices: Masks
    """Whole devices."""
    shares: dict[str, dict[int, int]] = field(default_factory=dict)
    """Thousandths left of devices of which a part is given away."""
    used_cpu: dict[str, int] = field(default_factory=dict)
    """Thousandths of a core that are given away."""
    used_memory: dict[str, int] = field(default_factory=dict)
    """MiB that are given away."""

    def copy(self) -> Room:
        return Room(
            index=self.index,
            devices=dict(self.devices),
            shares={node_id: dict(left) for node_id, left in self.shares.items()},
            used_cpu=dict(self.used_cpu),
            used_memory=dict(self.used_memory),
        )

    def take(self, placements: Iterable[Placement]) -> None:
        for part in placements:
            node_id = part.node_id
            if part.device_thousandths < WHOLE:
                for device in part.devices:
                    self.set_left(node_id, device, self.left_of(node_id, device) - part.device_thousandths)
            elif node_id in self.devices:
                self.devices[node_id] &= ~placement_mask(part)
            self.take_amounts(part)

    def take_amounts(self, part: Placement) -> None:
        node_id = part.node_id
        if part.cpu_milli:
            self.used_cpu[node_id] = self.used_cpu.get(node_id, 0) + part.cpu_milli
        if part.memory_mb:
            self.used_memory[node_id] = self.used_memory.get(node_id, 0) + part.memory_mb

    def give(self, part: Placement, reach: int = -1, spare: Spare | None = None) -> None:
        """Add what a placement gives back.

        Args:
            reach: the devices that count, as a mask.
            spare: what of it is not promised to others; taken from.
        """
        node_id = part.node_id
        if part.device_thousandths < WHOLE:
            for device in part.devices:
                if reach >> device & 1:
                    back = part.device_thousandths if spare is None else spare.share(part, device)
                    self.set_left(node_id, device, self.left_of(node_id, device) + back)
        elif gained := placement_mask(part) & reach:
            self.devices[node_id] = self.devices.get(node_id, 0) | gained
        if part.cpu_milli:
            back = part.cpu_milli if spare is None else spare.cpu(part)
            self.used_cpu[node_id] = self.used_cpu.get(node_id, 0) - back
        if part.memory_mb:
            back = part.memory_mb if spare is None else spare.memory(part)
            self.used_memory[node_id] = self.used_memory.get(node_id, 0) - back

    def cap(self, other: Room, node_ids: Iterable[str]) -> None:
        """Nowhere more than the other one has."""
        for node_id in node_ids:
            for device in tuple(self.shares.get(node_id, ())):
                self.set_left(node_id, device, min(self.left_of(node_id, device), other.left_of(node_id, device)))
            mask, others = self.devices.get(node_id, 0), other.devices.get(node_id, 0)
            if mask & ~others:
                self.devices[node_id] = mask & others
                for device in other.shares.get(node_id, ()):
                    if mask >> device & 1:
                        self.set_left(node_id, device, other.left_of(node_id, device))
            for mine, theirs in ((self.used_cpu, other.used_cpu), (self.used_memory, other.used_memory)):
                if theirs.get(node_id, 0) > mine.get(node_id, 0):
                    mine[node_id] = theirs[node_id]

    def left_of(self, node_id: str, device: int) -> int:
        """Thousandths of a device."""
        if self.devices.get(node_id, 0) >> device & 1:
            return WHOLE
        return self.shares.get(node_id, {}).get(device, 0)

    def set_left(self, node_id: str, device: int, left: int) -> None:
        bit = 1 << device
        mask = self.devices.get(node_id, 0) & ~bit
        parts = self.shares.setdefault(node_id, {})
        parts.pop(device, None)
        if left >= WHOLE:
            mask |= bit
        elif left > 0:
            parts[device] = left
        if not parts:
            del self.shares[node_id]
        self.devices[node_id] = mask

    def within(self, shape: Shape, wanted: Masks) -> Room:
        """What of it a shape may use; to be read, or copied.

        Walks the nodes that have anything, which are few in a cluster where little is free.
        """
        if shape.n_devices:
            devices = {n: left for n, mask in self.devices.items() if (left := mask & wanted.get(n, 0))}
        else:
            devices = wanted
        shares = self.shares
        if shares:
            shares = {
                node_id: found
                for node_id, parts in shares.items()
                if (found := {d: left for d, left in parts.items() if wanted.get(node_id, 0) >> d & 1})
            }
        return Room(
            index=self.index, devices=devices, shares=shares, used_cpu=self.used_cpu, used_memory=self.used_memory
        )

    def without(self, masks: Mapping[str, int]) -> Room:
        """The same less these devices."""
        return Room(
            index=self.index,
            devices={n: left for n, mask in self.devices.items() if (left := mask & ~masks.get(n, 0))},
            shares={
                node_id: found
                for node_id, parts in self.shares.items()
                if (found := {d: left for d, left in parts.items() if not masks.get(node_id, 0) >> d & 1})
            },
            used_cpu=self.used_cpu,
            used_memory=self.used_memory,
        )

    def less(self, placements: Iterable[Placement]) -> Room:
        """The same with the cores and the memory of these given away."""
        room = replace(self, used_cpu=dict(self.used_cpu), used_memory=dict(self.used_memory))
        for part in placements:
            room.take_amounts(part)
        return room

    def off(self, nodes: Iterable[str]) -> Room:
        """The same without these nodes."""
        gone = frozenset(nodes)
        return Room(
            index=self.index,
            devices={node_id: mask for node_id, mask in self.devices.items() if node_id not in gone},
            shares={node_id: parts for node_id, parts in self.shares.items() if node_id not in gone},
            used_cpu=self.used_cpu,
            used_memory=self.used_memory,
        )

    def cpu_left(self, node_id: str) -> int:
        return self.index.grounds[node_id].cpu_milli - self.used_cpu.get(node_id, 0)

    def memory_left(self, node_id: str) -> int:
        return self.index.grounds[node_id].memory_mb - self.used_memory.get(node_id, 0)


@dataclass(slots=True)
class Spare:
    """What is being left and not promised to anybody: the difference of two rooms, which is given out once."""

    at_hand: Room
    free: Room
    given: dict[tuple[str, str | int], int] = field(default_factory=dict)

    def devices(self, part: Placement) -> int:
        return placement_mask(part) & self.at_hand.devices.get(part.node_id, 0)

    def share(self, part: Placement, device: int) -> int:
        there = self.at_hand.left_of(part.node_id, device) - self.free.left_of(part.node_id, device)
        return self._hand_out((part.node_id, device), part.device_thousandths, there)

    def cpu(self, part: Placement) -> int:
        there = self.free.used_cpu.get(part.node_id, 0) - self.at_hand.used_cpu.get(part.node_id, 0)
        return self._hand_out((part.node_id, "cpu"), part.cpu_milli, there)

    def memory(self, part: Placement) -> int:
        there = self.free.used_memory.get(part.node_id, 0) - self.at_hand.used_memory.get(part.node_id, 0)
        return self._hand_out((part.node_id, "memory"), part.memory_mb, there)

    def _hand_out(self, key: tuple[str, str | int], wanted: int, there: int) -> int:
        given = self.given.get(key, 0)
        back = max(0, min(wanted, there - given))
        self.given[key] = given + back
        return back


def free_room(index: Indexes) -> Room:
    """What nobody holds and takes new work."""
    return Room(
        index=index,
        devices={node_id: mask for node_id, mask in index.free.items() if mask},
        shares={
            node_id: parts
            for node_id, used in index.used_shares.items()
            if (parts := {d: WHOLE - n for d, n in used.items() if n < WHOLE and _offers(index, node_id, d)})
        },
        used_cpu=dict(index.used_cpu),
        used_memory=dict(index.used_memory),
    )


def empty_room(index: Indexes, devices: Masks) -> Room:
    """These devices with nothing on them, nor on their nodes."""
    return Room(index=index, devices=devices)


def face(room: Room, node_id: str) -> Face:
    ground, parts = room.index.grounds[node_id], room.shares.get(node_id)
    return (
        room.devices.get(node_id, 0).bit_count(),
        ground.cpu_milli - room.used_cpu.get(node_id, 0),
        ground.memory_mb - room.used_memory.get(node_id, 0),
        tuple(sorted(parts.values())) if parts else (),
    )


def _offers(index: Indexes, node_id: str, device: int) -> bool:
    return bool(index.offered[node_id][None] >> device & 1)
