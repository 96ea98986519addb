"""What the server shows: jobs, attempts, nodes, runs, metrics, events, explanations.

Times are seconds since the epoch by the server's clock (`*_at`); None means it has not happened.
"""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from .operator import AgentsStopView, HoldView
from .spec import JobSpec
from .wire import ErrorBody, JsonObject, Wire


class PlacementView(Wire):
    """The part of an attempt that sits on one node."""

    node_id: str
    devices: tuple[int, ...]
    """Device indexes on that node."""
    first_rank: int
    """Rank of the first device; the others follow in order."""


class AttemptView(Wire):
    """One execution of a job."""

    attempt: int
    placements: tuple[PlacementView, ...]
    ordered_at: float
    started_at: float | None = None
    """When the user's command was started."""
    stop_ordered_at: float | None = None
    stop_cause: str | None = None
    """`preempt`, `cancel`, `timeout`, ... ; None: nobody asked it to stop."""
    beneficiary: str | None = None
    """For whom it was preempted: a job id."""
    ended_at: float | None = None
    outcome: str | None = None
    """succeeded, failed, preempted, node_lost, timed_out, cancelled, launch_failed."""
    exit_reason: str | None = None
    exit_code: int | None = None
    """None: unknown or not ended; negative: killed by that signal."""
    evidence: str | None = None
    """The line that tells why."""
    checkpoint_step: int | None = None
    """Newest complete checkpoint seen in this attempt."""
    launch: str | None = None
    """`cold`: the command was executed; `warm`: a process with its imports done became it. None: not started."""
    launch_why: str | None = None
    sandbox: SandboxView | None = None
    """None: not started, or by a release that had no sandbox."""
    run_s: float | None = None
    """Seconds from the start of the command until nothing of it was left, by the machine that it ran on: `started_at`
    and `ended_at` are when the server heard of it. None: not known, or not ended."""
    cpu_s: float | None = None
    """Processor time of its processes, in seconds of one core; None: not known, or not ended."""
    peak_memory_mb: float | None = None
    """Most memory (MiB) that its processes on this machine held at once; None: not known, or not ended."""


class SandboxView(Wire):
    """How far an attempt was really shut off."""

    level: str
    """none, user, sealed."""
    layers: tuple[str, ...] = ()
    """What holds it: mount, pid, ipc, net, uts, uid, no_new_privs, capabilities, seccomp, landlock, cgroup, rlimit."""
    uid: int | None = None
    """The user that its processes run as; None: the one that nightlab runs as."""
    how: str | None = None
    """Of a sealed one: `root`, `user namespace` or `landlock`; see docs/sandbox.md. None: not told."""


class SuggestionView(Wire):
    """One change that may help a job that ran out of memory. Nothing is changed by itself."""

    change: str
    """The parameter; parts of nested ones are joined by dots."""
    factor: float
    old: float
    new: float
    why: str
    """One sentence."""


class JobView(Wire):
    """One job: its spec, where it stands, and every attempt."""

    job_id: str
    state: str
    """queued, starting, running, stopping, succeeded, failed, cancelled."""
    state_reason: str | None = None
    """In words: why it waits, why it failed."""
    spec: JobSpec
    priority: int
    preemptible: bool
    submitted_at: float
    started_at: float | None = None
    """First attempt's start."""
    ended_at: float | None = None
    n_preemptions: int = 0
    n_retries: int = 0
    checkpoint_step: int | None = None
    attempts: tuple[AttemptView, ...] = ()
    run_id: str
    """Our MLflow run id, valid at once; `mlflow_url` appears when the tracking server has the run."""
    mlflow_run_id: str | None = None
    mlflow_url: str | None = None
    exit_reason: str | None = None
    suggestion: SuggestionView | None = None
    """After running out of memory, also while it waits for a retry."""

    @property
    def is_ended(self) -> bool:
        return self.state in ENDED_STATES

    def device_seconds(self, now: float) -> float:
        """Device-seconds leased by all its attempts until `now` (seconds since the epoch)."""
        total = 0.0
        for attempt in self.attempts:
            n_devices = sum(len(placement.devices) for placement in attempt.placements)
            end = attempt.ended_at if attempt.ended_at is not None else now
            total += max(end - attempt.ordered_at, 0.0) * n_devices
        return total


ENDED_STATES = frozenset({"succeeded", "failed", "cancelled"})
LIVE_STATES = ("queued", "starting", "running", "stopping")


class SubmitResult(Wire):
    """One job's answer in a batch: exactly one of `job` and `error`."""

    job: JobView | None = None
    error: ErrorBody | None = None
    is_existing: bool = False
    """The idempotency token was known; `job` is the earlier one."""


class DeviceView(Wire):
    index: int
    kind: str
    """`cpu`, or an accelerator model such as `H100`."""
    uuid: str
    memory_mb: int | None = None
    is_fake: bool = False
    job_id: str | None = None
    """Who holds it; None: free."""
    attempt: int | None = None
    reserved_for: str | None = None
    reserved_until: float | None = None
    busy_external: bool = False
    """Somebody else computes on it, or it is not fit for another reason: nothing is started there."""
    busy_reason: str | None = None
    """In words, with process and user where they are known."""


class NodeView(Wire):
    node_id: str
    generation: int
    state: str
    """A `NodeState`."""
    state_reason: str = ""
    devices: tuple[DeviceView, ...]
    hostname: str
    cpus: int
    memory_mb: int
    why_not_sealed: str | None = None
    """What it lacks for sealed jobs, and what to do. None: nothing that is known beforehand."""
    sealed_by: str | None = None
    """How it seals jobs: `root`, `user namespace` or `landlock`. None: not at all, or not told."""


class Departure(Wire):
    """An attempt that was asked to leave: why, for whom, and what that cost."""

    job_id: str
    priority_class: str
    attempt: int
    cause: str
    """`preempt` (for another job), `pause`, `drain`, `shutdown`, `renew` (at its time limit, to go on)."""
    beneficiary: str | None = None
    """The job it left for; None: for none."""
    reason: str | None = None
    """In words, as it was ordered; None: the journal no longer knows."""
    asked_at: float
    left_at: float | None = None
    """None: it is still leaving."""
    outcome: str | None = None
    """How the attempt ended: `preempted`, or `succeeded` within its grace, ..."""
    lost_device_seconds: float | None = None
    """Work after its last checkpoint; None: not known yet, or the journal no longer knows when it was."""


class ExpectedStart(Wire):
    """When a waiting job is expected to start, if nothing else arrives and all run as long as like jobs did."""

    at: float | None = None
    """None: that can not be told."""
    in_seconds: float | None = None
    """From the time of the answer."""
    basis: str
    """What it hangs on, or why it can not be told."""


class Explanation(Wire):
    """Why a job is where it is, by the functions that decide."""

    job_id: str
    state: str
    summary: str
    """One sentence."""
    queue_position: int | None = None
    """1 is next; None when not queued."""
    details: tuple[str, ...] = ()
    """Node by node, or event by event."""
    beneficiary: str | None = None
    """For whom it leaves, or left last."""
    expected_start: ExpectedStart | None = None
    """Of a job that waits for room; None: it does not."""
    departures: tuple[Departure, ...] = ()
    """Its attempts that were asked to leave, oldest first."""
    cost_to_others: tuple[Departure, ...] = ()
    """Attempts that were asked to leave for it, oldest first."""
    suggestion: SuggestionView | None = None


class VictimView(Wire):
    """An attempt that would be asked to leave."""

    job_id: str
    priority_class: str
    lost_device_seconds: float
    """Work since its last checkpoint, or since its start."""


class Forecast(Wire):
    """What the next round would do about a job, if it were submitted now. Nothing was submitted."""

    prospect: str
    """`starts`, `preempts`, `follows` (devices that are being left anyway), `waits`, `held`, `never`."""
    summary: str
    details: tuple[str, ...] = ()
    queue_position: int | None = None
    expected_start: ExpectedStart | None = None
    """None: it could never start, or is on hold."""
    placements: tuple[PlacementView, ...] = ()
    victims: tuple[VictimView, ...] = ()
    behind: tuple[str, ...] = ()
    """Jobs that come first, wait too, and want some of the same devices."""


class LogChunk(Wire):
    job_id: str
    attempt: int
    stream: str = "main"
    """`main`, or a rank with output of its own: `3`, and `3.err` for its errors."""
    text: str
    next_offset: int
    """Pass it back as `offset` to go on; in bytes."""
    n_cut: int = 0
    """Bytes that were cut out of a long output right before this text; the text says so too."""
    is_complete: bool
    """The attempt has ended and this chunk reaches the end."""


class LogStreams(Wire):
    job_id: str
    attempt: int
    streams: tuple[str, ...]
    """`main` first, then those of ranks that have files of their own."""


class LogErrorLine(Wire):
    """An error that the output reports; lines that differ in numbers only are one."""

    text: str
    count: int
    ranks: tuple[int, ...]
    """Who reports it; empty: it can not be told."""


class LogException(Wire):
    text: str
    """Its own line."""
    place: str | None = None
    """The line of the job's own code, `train.py:33`, else of a library; None: the output does not tell."""
    more: tuple[str, ...] = ()
    """Lines that follow it, a few: the rest of a long message is among them."""


class LogTraceback(Wire):
    exceptions: tuple[LogException, ...]
    """The last one is what was printed last; those before it are what it was raised for, the root first."""
    n_lines_after: int
    """Lines that the same rank printed after it: many, where the program went on."""


class LogEnd(Wire):
    """How the output of one rank ends, without colors and control characters."""

    rank: int | None
    """None: what belongs to no rank."""
    tracebacks: tuple[LogTraceback, ...]
    """The last ones, in their order."""
    lines: tuple[str, ...]
    """The last ones, in their order."""


class LogErrors(Wire):
    job_id: str
    attempt: int
    lines: tuple[LogErrorLine, ...]
    """In the order in which they first appear."""
    is_whole: bool
    """All of the output was searched; else the end of it."""
    ends: tuple[LogEnd, ...] = ()
    """What belongs to no rank first, then the ranks; empty: not told (an earlier server, or no output)."""


class MetricPoint(Wire):
    key: str
    value: float | None
    """None: not a number or infinite (JSON has neither); `text` tells which."""
    text: str | None = None
    step: int
    at: float
    attempt: int


class RunView(Wire):
    """An MLflow run as the gateway keeps it."""

    run_id: str
    """Ours, valid at once."""
    mlflow_run_id: str | None = None
    mlflow_url: str | None = None
    experiment_name: str
    run_name: str
    parent_run_id: str | None = None
    status: str
    params: dict[str, str] = Field(default_factory=dict)
    tags: dict[str, str] = Field(default_factory=dict)
    latest: dict[str, float | None] = Field(default_factory=dict)
    """Last value of each metric."""


class ArtifactView(Wire):
    """One file or folder among a run's artifacts, in MLflow's words."""

    path: str
    """Its name in the folder that was asked for."""
    is_dir: bool
    file_size: int | None = None
    """In bytes; None: a folder, or not told."""


class NewRun(Wire):
    """Asks for an MLflow run that no job carries (a session, a hypothesis)."""

    experiment_name: str
    run_name: str
    parent_run_id: str | None = None
    tags: dict[str, str] = Field(default_factory=dict)
    idempotency_token: str


class RunUpdate(Wire):
    """What to record on such a run; all parts optional."""

    params: dict[str, str] = Field(default_factory=dict)
    tags: dict[str, str] = Field(default_factory=dict)
    metrics: dict[str, float] = Field(default_factory=dict)
    step: int = 0
    status: str | None = None
    """FINISHED, FAILED or KILLED ends it."""


class EventView(Wire):
    """A fact. Journalled ones carry `seq` and can be replayed; passing ones (`metrics_logged`) have none."""

    seq: int | None
    type: str
    """snake_case past tense: `job_submitted`, `attempt_ended`, `metrics_logged`, ..."""
    version: int = 1
    at: float
    actor: str
    on_behalf_of: str | None = None
    project: str | None = None
    job_id: str | None = None
    data: JsonObject = Field(default_factory=dict)


class JobsAtShutdown(StrEnum):
    """What becomes of running jobs when the server is told to end."""

    REQUEUE = "requeue"
    """They get their notice, checkpoint, and resume at the next start."""
    CANCEL = "cancel"
    """They end for good."""


class Shutdown(Wire):
    """Tells the server to part with its jobs and end."""

    jobs: JobsAtShutdown = JobsAtShutdown.REQUEUE


class ServerInfo(Wire):
    version: str
    started_at: float
    n_devices: int
    n_devices_free: int
    n_queued: int
    n_running: int
    last_seq: int
    mlflow_url: str | None
    mlflow_state: str
    """`up`, `starting`, `unreachable: ...`, `off`."""
    priority_classes: dict[str, int]
    n_outbox: int
    """Records not yet mirrored to MLflow."""
    notices: tuple[str, ...] = ()
    """What an operator should know now: low disk, tracking server away, holds."""
    holds: tuple[HoldView, ...] = ()
    agents_stop: AgentsStopView | None = None
    """Set: what sessions submit is refused."""
    sealed_by: tuple[str, ...] = ()
    """How nodes seal jobs, each way once: `root`, `user namespace`, `landlock`. Empty: none can, or it is not told."""
