"""What the live view shows at one moment. Frozen; made by `source`, drawn by `screen` and `lines`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from agent.report.timeline import Preemption
from agent.store.views import ActivityView, FinalResult, ParamValue, Purpose, SessionState
from agent.task import Direction


class Phase(StrEnum):
    """What the session is at, in words."""

    SEARCHING = "searching"
    CONFIRMING = "confirming over fresh seeds"
    HELD_OUT = "taking the held-out look"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FINISHED = "finished"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotLine:
    """One device and what it does."""

    name: str
    job_id: str | None
    """None: idle, and so are the fields below."""
    trial_number: int | None = None
    """None: a job of somebody else."""
    purpose: Purpose | None = None
    priority_class: str = ""
    params: tuple[tuple[str, ParamValue], ...] = ()
    state: str = ""
    """starting, running, stopping."""
    is_resumed: bool = False
    """Went on from a checkpoint, or starts again after a preemption."""
    beneficiary: str | None = None
    """It was asked to leave for this job."""
    checkpoint_step: int | None = None
    """Newest complete checkpoint."""
    step: int | None = None
    n_steps: int | None = None
    value: float | None = None
    """Newest value of the objective's metric."""
    elapsed_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLine:
    job_id: str
    trial_number: int | None
    priority_class: str
    waiting_s: float
    is_requeued: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Spend:
    """Against the budget; a limit of None is no limit."""

    n_trials: int
    max_trials: int
    wall_s: float
    max_wall_s: float | None
    device_s: float
    max_device_s: float | None
    n_fresh: int
    """Replicates with a value."""
    max_fresh: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveSnapshot:
    at: float
    """Seconds since the epoch."""
    task_name: str
    session_id: str
    metric: str
    direction: Direction
    session_state: SessionState
    phase: Phase
    message: str
    since_start_s: float
    slots: tuple[SlotLine, ...]
    queue: tuple[QueueLine, ...]
    best_series: tuple[float, ...]
    """Best value of the search after each measured trial."""
    best: float | None
    best_trial: int | None
    best_params: tuple[tuple[str, ParamValue], ...]
    default: float | None
    n_search_measured: int
    n_measured: int
    n_invalid: int
    spend: Spend
    activity: tuple[ActivityView, ...]
    """Newest last."""
    preemptions: tuple[Preemption, ...]
    mlflow_url: str | None
    mlflow_state: str
    n_outbox: int
    notices: tuple[str, ...]
    result: FinalResult | None
