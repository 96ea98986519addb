"""What a placement spoils: capacity that the work at hand could have used, and afterwards can not. Pure.

Devices are worth nothing where cores or memory have run out, or where the parts that are left are too small. How much
of a node is unusable is estimated in two ways, which are mixed: if it were filled with one shape alone, averaged over
the shapes by what they ask for; and if it were filled with the average of them all. A placement goes where this
grows the least. The idea, to place by the growth of what the present mix of work can not use, is that of
fragmentation gradient descent. Source: Weng et al., "Beware of Fragmentation", USENIX ATC 2023.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from runtime.model.devices import Masks
from runtime.model.nouns import WHOLE, Needs, Placement, Shape

from .room import Face, Room, face

N_SHAPES = 32
"""Shapes that are looked at: those that ask for most."""
AVERAGE_SHARE = 0.7
"""Weight of the average of all shapes; the rest is for each shape alone."""
_PLAIN = Needs()


class Wanted(NamedTuple):
    """A shape of the work at hand."""

    shape: Shape
    weight: float
    """Share of all thousandths of devices that are asked for."""
    usable: Masks


class _Unit(NamedTuple):
    """One group of a shape in numbers."""

    weight: float
    n_devices: int
    thousandths: int
    cpu_milli: int
    memory_mb: int


@dataclass(slots=True)
class Typical:
    """The work at hand, and a memo of what it can use."""

    wanted: tuple[Wanted, ...]
    units: tuple[_Unit, ...] = ()
    cpu_each: float = 0.0
    """Thousandths of a core for each thousandth of a device, on the average."""
    memory_each: float = 0.0
    _users: dict[str, int] = field(default_factory=dict)
    _unusable: dict[tuple[int, Face], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.units = tuple(_unit_of(each) for each in self.wanted)
        for unit in self.units:
            size = unit.n_devices * unit.thousandths
            self.cpu_each += unit.weight * unit.cpu_milli / size
            self.memory_each += unit.weight * unit.memory_mb / size

    def least_spoiled(self, room: Room, candidates: Iterable[Placement]) -> Placement | None:
        """The placement that leaves most to others; ties go by node name. None: there are no candidates."""
        best: tuple[float, str] | None = None
        found = None
        for part in candidates:
            users = self.users(part.node_id)
            before = face(room, part.node_id)
            after = face_after(before, room, part)
            loss = round(self.unusable(users, after) - self.unusable(users, before), 6)
            if best is None or (loss, part.node_id) < best:
                best, found = (loss, part.node_id), part
        return found

    def users(self, node_id: str) -> int:
        """Which of the shapes could use this node, as a mask."""
        found = self._users.get(node_id)
        if found is None:
            found = sum(1 << i for i, each in enumerate(self.wanted) if node_id in each.usable)
            self._users[node_id] = found
        return found

    def unusable(self, users: int, left: Face) -> float:
        """Thousandths of devices that are left and of no use."""
        key = (users, left)
        found = self._unusable.get(key)
        if found is None:
            self._unusable[key] = found = self._estimate(users, left)
        return found

    def _estimate(self, users: int, left: Face) -> float:
        n_whole, cpu_milli, memory_mb, parts = left
        there = n_whole * WHOLE + sum(parts)
        alone = 0.0
        for i, unit in enumerate(self.units):
            if not users >> i & 1:
                continue
            if unit.thousandths < WHOLE:
                n = n_whole * (WHOLE // unit.thousandths) + sum(part // unit.thousandths for part in parts)
            else:
                n = n_whole // unit.n_devices
            if unit.cpu_milli:
                n = min(n, max(0, cpu_milli) // unit.cpu_milli)
            if unit.memory_mb:
                n = min(n, max(0, memory_mb) // unit.memory_mb)
            alone += unit.weight * n * unit.n_devices * unit.thousandths
        together = float(there)
        if self.cpu_each:
            together = min(together, max(0, cpu_milli) / self.cpu_each)
        if self.memory_each:
            together = min(together, max(0, memory_mb) / self.memory_each)
        return there - (1 - AVERAGE_SHARE) * alone - AVERAGE_SHARE * together


def typical_of(
    n_alive: Mapping[Shape, int], usable_by: Mapping[Shape, Masks], before: Typical | None = None
) -> Typical | None:
    """The work at hand; None: it asks for whole devices alone, for which fewest and tightest nodes are best.

    Numbers of jobs are rounded down to powers of two, so that the mix seldom changes.

    Args:
        before: an earlier answer for the same nodes, of which is kept what still holds.
    """
    if all(shape.needs is None for shape in n_alive):
        return None
    asked = [
        (float((1 << n.bit_length() - 1) * shape.n_devices * thousandths_of(shape)), shape)
        for shape, n in n_alive.items()
        if shape.n_devices and usable_by.get(shape)
    ]
    most = sorted(asked, key=lambda entry: (-entry[0], str(entry[1])))[:N_SHAPES]
    total = sum(weight for weight, _ in most)
    if not total:
        return None
    most.sort(key=lambda entry: str(entry[1]))
    found = Typical(tuple(Wanted(shape, weight / total, usable_by[shape]) for weight, shape in most))
    if before is not None and [each.shape for each in before.wanted] == [each.shape for each in found.wanted]:
        found._users = before._users
    return found


def thousandths_of(shape: Shape) -> int:
    """How much of each of its devices it takes."""
    return WHOLE if shape.needs is None else shape.needs.device_thousandths


def face_after(before: Face, room: Room, part: Placement) -> Face:
    """What is left of a node after a placement."""
    n_whole, cpu_milli, memory_mb, parts = before
    if part.device_thousandths < WHOLE:
        left = room.left_of(part.node_id, part.devices[0])
        remains = list(parts)
        if left == WHOLE:
            n_whole -= 1
        else:
            remains.remove(left)
        if left > part.device_thousandths:
            remains.append(left - part.device_thousandths)
        parts = tuple(sorted(remains))
    else:
        n_whole -= len(part.devices) + len(part.kept)
    return n_whole, cpu_milli - part.cpu_milli, memory_mb - part.memory_mb, parts


def _unit_of(each: Wanted) -> _Unit:
    shape, needs = each.shape, each.shape.needs or _PLAIN
    n_devices = shape.devices_per_node or 1
    return _Unit(each.weight, n_devices, needs.device_thousandths, needs.cpu_milli, needs.memory_mb)
