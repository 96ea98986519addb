"""What a person who runs the machines may ask for: holds, the stop of all agents, nodes, reservations."""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from pydantic import Field, model_validator

from .wire import Wire


class HoldScope(StrEnum):
    """Which jobs a hold is about."""

    ALL = "all"
    CLASS = "class"
    SESSION = "session"
    PROJECT = "project"


class HoldSelector(Wire):
    """All jobs, or those of one priority class, session or project."""

    scope: HoldScope
    name: str | None = Field(default=None, min_length=1, max_length=100)
    """Of the class, session or project; None for all."""

    @model_validator(mode="after")
    def _has_a_name_exactly_where_one_is_needed(self) -> Self:
        if (self.scope is HoldScope.ALL) != (self.name is None):
            raise ValueError("a class, session or project has a name, and all has none")
        return self


class HoldRequest(HoldSelector):
    """Matching jobs that run checkpoint and leave; none is started until the hold is lifted."""

    reason: str = Field(min_length=1, max_length=1000)


class HoldView(Wire):
    scope: HoldScope
    name: str | None = None
    reason: str
    placed_at: float
    placed_by: str

    @property
    def selector(self) -> str:
        """`all`, `class exploratory`, `session s1`."""
        return self.scope.value if self.name is None else f"{self.scope.value} {self.name}"


class AgentsStopView(Wire):
    reason: str
    since: float


class Holds(Wire):
    """What is held up by people now."""

    holds: tuple[HoldView, ...] = ()
    agents_stop: AgentsStopView | None = None
    """Set: what sessions submit is refused."""
    n_held: int = 0
    """Queued jobs on hold."""
    n_leaving: int = 0
    """Attempts that were asked to leave for a hold, and have not yet."""


class AgentsStopRequest(Wire):
    """No session may submit any more, until it is taken back."""

    reason: str = Field(min_length=1, max_length=1000)


class NodeState(StrEnum):
    """What a node is good for."""

    HEALTHY = "healthy"
    SUSPECT = "suspect"
    """Used last, and never for gangs."""
    DRAINING = "draining"
    """Takes no new work; what runs there is asked to checkpoint and leave."""
    QUARANTINED = "quarantined"
    """Takes no new work: something is wrong with it."""
    CORDONED = "cordoned"
    """Takes no new work: somebody wants it so."""


class NodeStateRequest(Wire):
    state: NodeState
    reason: str = Field(default="", max_length=1000)


class ReservationRequest(Wire):
    """Keep devices for somebody outside; what runs on them is asked to checkpoint and leave."""

    devices: tuple[int, ...] = Field(min_length=1, max_length=1024)
    holder: str = Field(min_length=1, max_length=100)
    until: float
    """Seconds since the epoch; then it lapses."""


class DevicesRequest(Wire):
    """Devices of a node that are no longer reserved, or that somebody else computes on."""

    devices: tuple[int, ...] = Field(default=(), max_length=1024)
