"""What people put in the way of work: holds on jobs, the standing of a node, the stop of all agents. Frozen. Pure.

All of it arrives as events and stays until somebody takes it back; a restart or a new registration changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from .devices import mask_of
from .nouns import Job, Node


class HoldScope(StrEnum):
    """Which jobs a hold is about."""

    ALL = "all"
    CLASS = "class"
    """Those of one priority class."""
    SESSION = "session"
    PROJECT = "project"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Matching jobs are not started until it is lifted."""

    scope: HoldScope
    name: str | None
    """Of the class, session or project; None for all."""
    reason: str
    placed_at_s: float
    placed_by: str

    @property
    def key(self) -> str:
        """What it is filed under; one hold for each selector."""
        return hold_key(self.scope, self.name)

    def matches(self, job: Job) -> bool:
        match self.scope:
            case HoldScope.ALL:
                return True
            case HoldScope.CLASS:
                return job.priority_class == self.name
            case HoldScope.SESSION:
                return job.session_id is not None and job.session_id == self.name
            case HoldScope.PROJECT:
                return job.project == self.name


def hold_key(scope: HoldScope, name: str | None) -> str:
    """`all`, `class exploratory`, `session s1`."""
    return scope.value if name is None else f"{scope.value} {name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentsStop:
    """No session may submit until it is taken back."""

    reason: str
    since_s: float


class NodeState(StrEnum):
    """What a node is good for."""

    HEALTHY = "healthy"
    SUSPECT = "suspect"
    """Used last, and never for gangs."""
    DRAINING = "draining"
    """Takes no new work; what runs there was asked to checkpoint and leave."""
    QUARANTINED = "quarantined"
    """Takes no new work: something is wrong with it."""
    CORDONED = "cordoned"
    """Takes no new work: somebody wants it so."""


CLOSED = frozenset({NodeState.DRAINING, NodeState.QUARANTINED, NodeState.CORDONED})
"""Nodes in these states take no new work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """Devices of one node that are kept for somebody outside of nightlab."""

    devices: tuple[int, ...]
    """Ascending, not empty."""
    holder: str
    until_s: float
    """Seconds since the epoch; then it lapses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What is known about a node besides its registration. A node without one is healthy."""

    node_id: str
    state: NodeState = NodeState.HEALTHY
    reason: str = ""
    reservations: tuple[Reservation, ...] = ()
    """No device in two of them."""
    busy_external: tuple[int, ...] = ()
    """Devices that somebody else computes on, or that are not fit for another reason; ascending."""
    busy_reasons: tuple[str, ...] = ()
    """In words, one for each of them; empty: nobody said why."""

    @property
    def is_plain(self) -> bool:
        """Whether it says nothing."""
        return self == Standing(node_id=self.node_id)

    @property
    def is_suspect(self) -> bool:
        return self.state is NodeState.SUSPECT

    def closed(self, node: Node) -> int:
        """The devices that take no new work, as a mask."""
        if self.state in CLOSED:
            return mask_of(device.index for device in node.devices)
        return mask_of(self.busy_external) | mask_of(self.reserved)

    @property
    def reserved(self) -> tuple[int, ...]:
        return tuple(sorted(device for reservation in self.reservations for device in reservation.devices))

    def busy_reason(self, device: int) -> str | None:
        """Why a device is not given out; None: it is, or nobody said."""
        return dict(zip(self.busy_external, self.busy_reasons, strict=False)).get(device)

    def with_busy(self, devices: Iterable[int], reasons: Iterable[str]) -> Standing:
        """The same with these devices, and no others, not to be given out."""
        listed = tuple(devices)
        said = tuple(reasons)
        if len(said) != len(listed):
            return replace(self, busy_external=tuple(sorted(listed)), busy_reasons=())
        by_device = sorted(zip(listed, said, strict=True))
        return replace(
            self, busy_external=tuple(d for d, _ in by_device), busy_reasons=tuple(reason for _, reason in by_device)
        )

    def without(self, devices: Iterable[int]) -> Standing:
        """The same with these devices reserved for nobody."""
        gone = frozenset(devices)
        kept = (
            replace(reservation, devices=left)
            for reservation in self.reservations
            if (left := tuple(device for device in reservation.devices if device not in gone))
        )
        return replace(self, reservations=tuple(kept))

    def lapsed(self, now_s: float) -> tuple[int, ...]:
        """Reserved devices whose time is over."""
        return tuple(
            d for reservation in self.reservations if reservation.until_s <= now_s for d in reservation.devices
        )
