"""Facts, in the past tense. Applying them in order is the only way the state changes. Pure.

`Recorded` is the journal's envelope; its `version` is per event type, and old payloads are upcast on load.
Intent and fact are two events (`StartOrdered`, then `AttemptStarted`): after a crash the replay shows which
orders have no answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from .budgets import Budget, BudgetScope
from .holds import Hold, HoldScope, NodeState, Reservation
from .nouns import Job, Node, Placement, SandboxReached
from .states import AttemptOutcome, ExitReason, JobState, StopCause


class Then(StrEnum):
    """What becomes of the job after an attempt."""

    REQUEUE = "requeue"
    """Back to the queue with submission time and checkpoint kept; costs no retry."""
    RETRY = "retry"
    """Back to the queue, one retry spent."""
    END = "end"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeJoined:
    node: Node


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLeft:
    node_id: str
    generation: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFenced:
    """A research session showed a newer fencing number; older ones are refused from now on."""

    session_id: str
    fence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSubmitted:
    job: Job


@dataclass(frozen=True, slots=True, kw_only=True)
class StartOrdered:
    job_id: str
    attempt: int
    placements: tuple[Placement, ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptStarted:
    job_id: str
    attempt: int
    pid: int | None
    launch: str = "cold"
    """`cold`: the command was executed; `warm`: a process with its imports done became it."""
    launch_why: str = ""
    sandbox: SandboxReached | None = None
    """None: an older release started it, which had none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointSeen:
    job_id: str
    attempt: int
    step: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StopOrdered:
    job_id: str
    attempt: int
    cause: StopCause
    reason: str
    beneficiary: str | None
    grace_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptEnded:
    """The attempt is proven gone, its devices are free. `then` and `end_state` were decided by `disposition`."""

    job_id: str
    attempt: int
    outcome: AttemptOutcome
    exit_reason: ExitReason
    exit_code: int | None
    evidence: str | None
    then: Then
    end_state: JobState | None
    """Set exactly when `then` is END."""
    not_before_s: float = 0.0
    run_s: float | None = None
    """From the start of the command until nothing of it was left, by its own machine; None: nobody knows."""
    cpu_s: float | None = None
    """Processor time of all its processes that have ended, in seconds of one core; None: nobody knows."""
    peak_memory_mb: float | None = None
    """Most memory that its processes held at once, in MiB; None: nobody knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnded:
    """A job that held nothing ended: cancelled in the queue, or waited too long."""

    job_id: str
    end_state: JobState
    exit_reason: ExitReason
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldPlaced:
    """Matching jobs are not started any more. Another hold with the same selector is replaced."""

    hold: Hold


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldLifted:
    scope: HoldScope
    name: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentsStopped:
    """What a session submits is refused from now on."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentsAllowed:
    """Sessions may submit again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetSet:
    """The most device time that a session or a project may use; an earlier budget of the same is replaced."""

    budget: Budget


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetLifted:
    scope: BudgetScope
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStateSet:
    node_id: str
    state: NodeState
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicesReserved:
    """Devices are kept for somebody; an earlier reservation of the same devices is over."""

    node_id: str
    reservation: Reservation


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicesUnreserved:
    node_id: str
    devices: tuple[int, ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicesBusySeen:
    """These devices of the node are not to be given out now, and no others: processes that are not ours use them,
    another nightlab has them, they do not answer or have a fault."""

    node_id: str
    devices: tuple[int, ...]
    reasons: tuple[str, ...] = ()
    """In words, one for each device, in the same order; empty: nobody said why."""


Event = (
    NodeJoined
    | NodeLeft
    | SessionFenced
    | JobSubmitted
    | StartOrdered
    | AttemptStarted
    | CheckpointSeen
    | StopOrdered
    | AttemptEnded
    | JobEnded
    | HoldPlaced
    | HoldLifted
    | AgentsStopped
    | AgentsAllowed
    | BudgetSet
    | BudgetLifted
    | NodeStateSet
    | DevicesReserved
    | DevicesUnreserved
    | DevicesBusySeen
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """An event with its place in the journal."""

    seq: int
    """1, 2, 3, ... without gaps."""
    at_s: float
    """Seconds since the epoch, by the server's clock."""
    actor: str
    """Who caused it: `scheduler`, `node:local`, `user:owner`, `session:s1`."""
    on_behalf_of: str | None
    project: str | None
    event: Event
