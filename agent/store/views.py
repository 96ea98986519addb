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


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityView:
    """One line of what the agent does and why."""

    at: float
    step: str
    text: str
    trial_id: str | None = None
    job_id: str | None = None
