"""How many groups of a gang fit, kept in step while more and more is given back. Pure."""

from __future__ import annotations

from runtime.model.nouns import Placement, Shape

from .fit import groups_on, kinds_tried, n_groups, nodes_of
from .room import Room, Spare


class Tally:
    """Counts once, and then only the nodes that change."""

    __slots__ = ("_n_by_kind", "_needed", "_shape", "room")

    def __init__(self, shape: Shape, room: Room) -> None:
        """The room is copied."""
        self.room = room.copy()
        self._shape = shape
        self._needed = n_groups(shape)
        self._n_by_kind = {
            kind: sum(groups_on(shape, room, node_id, kind) for node_id in nodes_of(shape, room))
            for kind in kinds_tried(shape)
        }

    def give(self, part: Placement, reach: int, spare: Spare | None = None) -> None:
        """Add what a placement gives back, of the devices in `reach`."""
        before = {kind: groups_on(self._shape, self.room, part.node_id, kind) for kind in self._n_by_kind}
        self.room.give(part, reach, spare)
        for kind, n in before.items():
            self._n_by_kind[kind] += groups_on(self._shape, self.room, part.node_id, kind) - n

    @property
    def fits(self) -> bool:
        return any(n >= self._needed for n in self._n_by_kind.values())
