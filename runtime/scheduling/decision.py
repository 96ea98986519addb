"""What a round of scheduling decides: actions, each with its reason and, where there is one, its beneficiary."""

from __future__ import annotations

from dataclasses import dataclass

from runtime.model.nouns import Placement


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    job_id: str
    attempt: int
    placements: tuple[Placement, ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Preempt:
    job_id: str
    attempt: int
    beneficiary: str
    reason: str
    grace_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeOut:
    """A running attempt reached its time limit."""

    job_id: str
    attempt: int
    is_renewed: bool
    """Its job goes on as a new attempt."""
    reason: str
    grace_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Expire:
    """A queued job waited longer than it wanted to."""

    job_id: str
    reason: str


Action = Start | Preempt | TimeOut | Expire


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    actions: tuple[Action, ...]
    next_wake_s: float | None
    """When a round is due even if nothing happens (a time limit, a backoff); None: never."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasons:
    """`explain`'s answer."""

    summary: str
    queue_position: int | None
    details: tuple[str, ...]
    beneficiary: str | None
