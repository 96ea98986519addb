"""What an engine is: how nodes are found, and how attempts are started and stopped on them.

The server is the only caller. An engine never decides; it carries orders out and reports facts. Every report
names job, attempt and node generation, so that late ones can be refused. One conformance suite runs on all
engines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from runtime.model.nouns import Node, Placement, SandboxReached
from runtime.model.root_cause import RankTail
from runtime.model.states import ExitReason, StopCause


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptKey:
    job_id: str
    attempt: int


MAIN_STREAM = "main"
"""The output of the leader, and of all that share it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPiece:
    """Part of a stream of output."""

    start: int
    """Where it begins: later than asked for, when that was cut out of a long output."""
    content: bytes
    size: int
    """Of the whole stream, with all that was cut out."""
    n_cut: int = 0
    """Bytes that were cut out right before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchOrder:
    """Everything a node needs to start one attempt. Sending it twice starts it once."""

    key: AttemptKey
    placements: tuple[Placement, ...]
    spec_json: str
    """The submitted `JobSpec` as JSON."""
    attempt_token: str
    """Bearer token for the metrics gateway, valid for this attempt alone."""
    tracking_url: str
    """The metrics gateway."""
    resume_step: int | None
    """Newest complete checkpoint; None: start from nothing."""
    device_kinds: tuple[str, ...]
    """Kinds of the devices in rank order (`cpu`, `H100`, ...)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopAttempt:
    key: AttemptKey
    cause: StopCause
    reason: str
    grace_s: float
    """From notice to kill. 0: kill at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    key: AttemptKey
    generation: int
    pid: int
    at_s: float
    launch: str = "cold"
    """Or `warm`."""
    launch_why: str = ""
    sandbox: SandboxReached | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpointed:
    key: AttemptKey
    generation: int
    step: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Exited:
    """The attempt's whole process tree is gone and its devices are empty."""

    key: AttemptKey
    generation: int
    exit_code: int | None
    """Negative: killed by that signal. None: unknown (the supervisor was lost)."""
    was_killed: bool
    """We had to kill it: the grace ran out, or leftovers remained."""
    ended_at_s: float
    log_tail: str
    """Up to the last 64 KiB of its output."""
    checkpoint_step: int | None
    supervisor_lost: bool = False
    node_restarted: bool = False
    """The machine was restarted while it ran."""
    oom_killed: bool = False
    run_s: float | None = None
    """From the start of the command until nothing of it was left, by its own machine; None: nobody knows."""
    cpu_s: float | None = None
    """Processor time of all its processes that have ended, in seconds of one core; None: nobody knows."""
    peak_memory_mb: float | None = None
    """Most memory that its processes held at once, in MiB; None: nobody knows."""
    device_fault: str | None = None
    """What its devices themselves reported while it ran, in words (a fatal XID, a device that is gone)."""
    rank_tails: tuple[RankTail, ...] = ()
    """The end of the output of each rank that has files of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotLaunched:
    """The command never ran, and nothing of it is left."""

    key: AttemptKey
    generation: int
    exit_reason: ExitReason
    """BAD_PYTHON, BAD_COMMAND, DISK_FULL, LAUNCHER_UNAVAILABLE, ..."""
    evidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsRead:
    """Metrics found in a job's output by a declared source (`JobSpec.metric_sources`)."""

    key: AttemptKey
    points: tuple[tuple[str, float, int, float], ...]
    """(name, value, step, seconds since the epoch)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicesSeen:
    """What the devices of a node showed, when that has changed."""

    node_id: str
    devices: tuple[int, ...]
    """All that were looked at; of others nothing is said."""
    unfit: tuple[tuple[int, str], ...]
    """Those of them that must not be given out now, and in words why: used by others, not answering, faulty."""


NodeReport = Started | Checkpointed | Exited | NotLaunched | MetricsRead | DevicesSeen


class Engine(Protocol):
    async def open(self, report: Callable[[NodeReport], None]) -> Sequence[Node]:
        """Find the nodes and begin to report. Generations are assigned by the caller afterwards."""
        ...

    async def adopt(self, running: Sequence[LaunchOrder], generation: int) -> None:
        """Take over attempts that an earlier server ordered.

        Each is answered by reports: still running (`Started`), ended meanwhile (`Exited`), or never launched,
        in which case it is launched now. Attempts on disk that are not named here are killed.
        """
        ...

    async def start(self, order: LaunchOrder, generation: int) -> None: ...

    async def stop(self, order: StopAttempt, generation: int) -> None: ...

    async def read_log(self, key: AttemptKey, offset: int, limit: int, stream: str = MAIN_STREAM) -> LogPiece:
        """Bytes of a stream of the attempt's output from `offset`. Empty when there is none."""
        ...

    async def log_streams(self, key: AttemptKey) -> Sequence[str]:
        """Names of the streams that there are: `main`, and for ranks with files of their own `0`, `0.err`, `1`, ..."""
        ...

    async def signs_of_life(self, keys: Sequence[AttemptKey]) -> Mapping[AttemptKey, int]:
        """A number for each attempt that changes whenever it writes output; those that are not here are left out."""
        ...

    async def dump_stacks(self, key: AttemptKey) -> str | None:
        """Where the attempt's processes are now, for people; kept with its output too. None: it can not be told."""
        ...

    async def free_bytes(self) -> int:
        """Free space where attempts write."""
        ...

    async def close(self) -> None:
        """Stop reporting. Running attempts go on."""
        ...
