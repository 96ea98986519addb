"""What the rest of nightlab reads of a session: the rows of the agent's store as frozen values.

Times are seconds since the epoch. Writers are in `agent.store`; the live view, the report and the command line
read these and nothing else of the agent.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

ParamValue = str | int | float | bool | None


class SessionState(StrEnum):
    RUNNING = "running"
    """A process works on it, or will as soon as the runtime is up."""
    STOPPING = "stopping"
    """Asked to stop in order; can be resumed."""
    STOPPED = "stopped"
    """Stopped in order; `research resume` goes on."""
    FINISHED = "finished"
    """The plan is done and reported."""
    FAILED = "failed"
    """It can not go on; `message` says why and what to do."""


class Purpose(StrEnum):
    SEARCH = "search"
    """A configuration tried for the first time."""
    REPLICATE = "replicate"
    """A known configuration with a fresh seed."""
    HELD_OUT = "held_out"
    """The counted look at the held-out metric."""


class TrialState(StrEnum):
    PROPOSED = "proposed"
    """Ready to launch; holds no device."""
    LAUNCHED = "launched"
    """Its job was submitted."""
    MEASURED = "measured"
    """`value` is set and valid."""
    INVALID = "invalid"
    """Ended without a usable value; `note` says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialView:
    trial_id: str
    session_id: str
    number: int
    """1, 2, 3, ... within the session."""
    configuration: str
    """Canonical hash of the searched parameters: replicates of one configuration share it."""
    params: dict[str, ParamValue]
    seed: int
    purpose: Purpose
    suggested_by: str
    """`default`, `optuna`, `replicator`, ..."""
    why: str
    state: TrialState
    job_id: str | None
    value: float | None
    note: str | None
    exit_reason: str | None
    device_seconds: float
    proposed_at: float
    launched_at: float | None
    ended_at: float | None
    submission: int = 1
    """Which job carries it: a queued job recalled at a stop is followed by the next one."""
    is_submitting: bool = False
    """The intent to submit is recorded, the answer is not yet."""
    is_recalled: bool = False
    """Its queued job was asked back because the session stops."""

    @property
    def is_ended(self) -> bool:
        return self.state in (TrialState.MEASURED, TrialState.INVALID)

    @property
    def is_in_flight(self) -> bool:
        return self.state is TrialState.LAUNCHED or self.is_submitting


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    estimate: float
    low: float
    high: float
    confidence: float
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalResult:
    """What a session found, by code."""

    best: dict[str, ParamValue]
    default: dict[str, ParamValue]
    best_configuration: str
    default_configuration: str
    best_mean: Interval | None
    default_mean: Interval | None
    difference: Interval | None
    """Best minus default over paired fresh seeds, in the metric's own units."""
    comparison: str
    """better, worse, indistinguishable, invalid: the best against the default."""
    verdict: str
    """supported, refuted, inconclusive: the claim that the best beats the default."""
    held_out_value: float | None
    held_out_looks: int
    sentence: str
    """The same for a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionView:
    session_id: str
    task_name: str
    task_json: str
    """The task as it was when the session started."""
    state: SessionState
    message: str
    created_at: float
    ended_at: float | None
    fence: int
    pid: int | None
    """Process that works on it now."""
    run_id: str | None
    """Our id of the session's MLflow run."""
    plan_revision: int
    n_trials: int
    """Search trials proposed so far."""
    device_seconds: float
    wall_seconds: float
    """Time in which the session was running, over all its lives."""
    report_path: str | None
    result: FinalResult | None
    hypothesis_run_id: str | None = None
    """Our id of the MLflow run that is the trials' parent."""
    key: str = ""
    """Random part of every idempotency token, so that two homes never share one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityView:
    """One line of what the agent does and why."""

    at: float
    step: str
    text: str
    trial_id: str | None = None
    job_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanView:
    """One revision of a session's plan."""

    revision: int
    at: float
    phase: str
    """search, confirm, held_out, done."""
    reason: str
    """What changed, in words."""
    plan_json: str
    """The whole revision as data; also the artifact `plan/revision-<n>.json` of the session's MLflow run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookView:
    """One counted look at the held-out metric; written before its job is launched."""

    look: int
    """1, 2, ... within the session."""
    at: float
    metric: str
    configuration: str
    trial_id: str
    value: float | None
    """None: not known yet, or the job ended without it; the look counts all the same."""
