"""What the rest of nightlab reads of a sweep's nights: rows of the agent's store as frozen values. Times are epochs."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from agent.store.views import Interval, ParamValue


class NightState(StrEnum):
    RUNNING = "running"
    """Its process works on it, or will as soon as the agent service is up."""
    STOPPING = "stopping"
    """Asked to end early, by a person or by the next night."""
    ENDED = "ended"
    """Over: nothing of it runs or waits; `outcome` says how."""


class NightOutcome(StrEnum):
    DONE = "done"
    """Everything that the file asks for was run."""
    DEADLINE = "deadline"
    """`finish_by` or the end of the window came first."""
    BUDGET = "budget"
    """A budget was used up first."""
    STOPPED = "stopped"
    """A person ended it."""
    REPLACED = "replaced"
    """The next night ended it (`overlap: replace`)."""
    SKIPPED = "skipped"
    """Not begun: the night before still ran, or it was started outside its window."""
    FAILED = "failed"
    """Not one trial gave a value, or it could not be run; `message` says why."""


class Change(StrEnum):
    """Tonight against the reference night."""

    BETTER = "better"
    WORSE = "worse"
    UNCHANGED = "unchanged"
    """No change was shown."""
    UNKNOWN = "unknown"
    """Nothing to compare, or too few pairs to show any change; `reason` says which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchResult:
    """One thing watched in one cell."""

    cell: str
    what: str
    """metric, speed, memory."""
    change: Change
    reference: str | None
    """Night it is compared with; None: there is none."""
    n_pairs: int
    """Trials of the same configuration and seed in both nights."""
    interval: Interval | None
    """Tonight minus the reference: in the metric's own units, or as a part of the reference (0.05: five percent)."""
    p_value: float | None
    alpha: float | None
    """Its share of the night's error budget; a change is shown when the p-value is not above it."""
    reason: str
    """In words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellBest:
    """What one cell came to; kept with the night, so that history needs no old trials."""

    cell: str
    task: str
    metric: str
    direction: str
    session_id: str | None
    n_trials: int
    n_measured: int
    n_failed: int
    default_value: float | None
    """Mean of the default's values."""
    best_params: dict[str, ParamValue] | None
    best: Interval | None
    """Corrected for the luck of the choice where the session could; None: nothing was measured."""
    basis: str | None
    """fresh, shrunk or as_measured, as in `FinalResult`; None with `best`."""
    comparison: str | None
    """better, worse, indistinguishable, invalid: the best against the default on fresh seeds."""
    seconds: float | None = None
    """Median run time of a measured trial."""
    memory_mb: float | None = None
    """Median peak memory of a measured trial; None: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NightSummary:
    """What a night came to, as written once at its end."""

    cells: tuple[CellBest, ...] = ()
    watched: tuple[WatchResult, ...] = ()
    device_seconds: float = 0.0
    """Used by its trials, in all attempts."""
    n_preemptions: int = 0
    """How often a trial of it gave way to somebody."""
    given_back_s: float = 0.0
    """Device-seconds for which its trials had left and waited after a preemption."""
    cost_usd: float | None = None
    n_resumed: int = 0
    """Trials that went on from the night before."""
    n_left: int = 0
    """Trials that were in flight at the deadline and can go on the next night."""
    notified: tuple[str, ...] = ()
    """What became of each notification, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellView:
    """One cell of one night."""

    night_id: str
    position: int
    cell: str
    """`task`, `task@code`, `task@code/data`: the same name in every night."""
    task_json: str
    session_id: str | None
    """None: not started."""
    is_resumed: bool
    """Its session was begun in the night before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NightView:
    night_id: str
    """`digits-nightly-n3`."""
    sweep: str
    number: int
    """1, 2, 3, ... of this sweep."""
    file: str
    """The sweep file, absolute."""
    sweep_json: str
    """The sweep as it was when the night began."""
    state: NightState
    outcome: NightOutcome | None
    message: str
    created_at: float
    finish_by: float | None
    """When nothing may run any more; None: no limit."""
    ended_at: float | None
    pid: int | None
    report_html: str | None
    report_markdown: str | None
    summary: NightSummary | None
    is_reference: bool = False
    """Accepted by a person: later nights are compared with it."""
    stop_asked_at: float | None = None
    """When it was first asked to end early."""
    settled_at: float | None = None
    """When its page was written and everybody told. None: that is still to be done."""
    cells: tuple[CellView, ...] = field(default=())
