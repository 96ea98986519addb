"""One attempt as the local engine watches it, and what its folder tells."""

from __future__ import annotations

import contextlib
import errno
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runtime.engines.contract import AttemptKey, Exited, MetricsRead, NodeReport, NotLaunched, Started
from runtime.engines.preparation import Prepared, save_positions
from runtime.model.nouns import SandboxReached
from runtime.model.root_cause import RankTail
from runtime.model.states import ExitReason
from runtime.node import cgroups, checkpoints, metric_sources, output, processes, records, stacks

LOG_TAIL_BYTES = 64 * 1024
RANK_TAIL_BYTES = 16 * 1024
MOST_RANK_TAILS = 64
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_NOT_THE_COMMAND = frozenset({errno.ENOMEM, errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.EIO, errno.EADDRINUSE})


@dataclass(slots=True, kw_only=True)
class Watched:
    """Changed by the engine alone."""

    key: AttemptKey
    generation: int
    prepared: Prepared
    devices: tuple[int, ...] = ()
    """On this node."""
    supervisor: dict[str, Any] | None = None
    """Its record, once it has claimed the attempt."""
    is_started: bool = False
    """`Started` was reported."""
    is_ending: bool = False
    """Its end is being worked on; nobody else looks at it."""
    launch_asked_at: float = 0.0
    """Monotonic."""
    n_launches: int = 0
    kill_at: float | None = None
    """Monotonic; by then a stopped attempt must be gone, or the engine kills it."""
    checkpoint_step: int | None = None
    """Newest reported."""
    has_new_positions: bool = False
    failed_sources: set[int] = field(default_factory=set)

    def record(self, name: str) -> dict[str, Any] | None:
        return records.read(str(self.prepared.folder / name))

    def find_supervisor(self) -> dict[str, Any] | None:
        if self.supervisor is None:
            self.supervisor = self.record(records.SUPERVISOR)
        return self.supervisor

    @property
    def supervisor_pid(self) -> int | None:
        """As far as it is known; it may be gone."""
        return None if self.supervisor is None else self.supervisor.get("pid")


def is_supervised(supervisor: dict[str, Any], boot_id: str) -> bool:
    """Whether that supervisor still lives."""
    if "pid" not in supervisor or supervisor["boot_id"] != boot_id:
        return False
    return processes.is_alive(supervisor["pid"], supervisor["start_ticks"])


def started_report(watched: Watched) -> list[NodeReport]:
    """`Started`, once, as soon as the command runs."""
    started = None if watched.is_started else watched.record(records.STARTED)
    if started is None:
        return []
    watched.is_started = True
    return [
        Started(
            key=watched.key,
            generation=watched.generation,
            pid=started["pid"],
            at_s=started["at"],
            launch="warm" if started.get("launch") == "warm" else "cold",
            launch_why=str(started.get("launch_why", "")),
            sandbox=_reached(started.get("sandbox")),
        )
    ]


def _reached(told: object) -> SandboxReached | None:
    """What a supervisor wrote down; older ones wrote nothing."""
    if not isinstance(told, dict):
        return None
    return SandboxReached(
        level=str(told["level"]), layers=tuple(map(str, told["layers"])), uid=told["uid"], how=told.get("how")
    )


def newest_checkpoint(watched: Watched) -> int | None:
    newest = checkpoints.newest_complete(watched.prepared.checkpoint_dir, known=watched.checkpoint_step)
    return newest[0] if newest else None


def metrics_report(watched: Watched, *, is_final: bool = False) -> list[NodeReport]:
    """What came since the last time, from all sources. One that fails is switched off, and the log says so."""
    points: list[metric_sources.Point] = []
    for number, reader in enumerate(watched.prepared.readers):
        if number in watched.failed_sources:
            continue
        try:
            points += metric_sources.read_to_end(reader) if is_final else reader.read()
        except metric_sources.SourceFailed as failure:
            watched.failed_sources.add(number)
            _say_in_log(watched, f"metric source {number + 1} is switched off: {failure}")
    if not points:
        return []
    watched.has_new_positions = True
    return [MetricsRead(key=watched.key, points=tuple(points))]


def keep_positions(watched: Watched) -> None:
    """Save how far metrics were read: one look later than reported, so that a crash repeats some rather than loses."""
    if watched.has_new_positions:
        watched.has_new_positions = False
        try:
            save_positions(watched.prepared)
        except OSError:
            watched.has_new_positions = True  # A full disk. Tried again at the next look.


def log_tail(watched: Watched) -> str:
    return _tail(str(watched.prepared.folder / records.LOG), LOG_TAIL_BYTES)


def rank_tails(watched: Watched) -> tuple[RankTail, ...]:
    """The end of what each rank wrote into files of its own: its output, then its errors."""
    texts: dict[int, str] = {}
    folder = str(watched.prepared.folder)
    for stream, path in sorted(output.streams(folder).items()):
        rank = output.rank_of(stream)
        if rank is not None and (rank in texts or len(texts) < MOST_RANK_TAILS):
            texts[rank] = texts.get(rank, "") + _tail(path, RANK_TAIL_BYTES, folder)
    return tuple(RankTail(rank=rank, text=text) for rank, text in sorted(texts.items()))


def write_stacks(folder: Path, supervisor: dict[str, Any]) -> str | None:
    """Dump the stacks of all processes of an attempt into its folder; the text. Takes some seconds."""
    group = supervisor.get("cgroup")
    below = processes.descendants([supervisor["pid"]], processes.table()) - {supervisor["pid"]}
    text = stacks.dump(below | (cgroups.members(group) if group else set()), folder)
    with contextlib.suppress(OSError):  # On a full disk the text still goes where the caller puts it.
        records.write_text(str(folder / stacks.STACKS), text)
    return text or None


def _tail(path: str, n_bytes: int, folder: str | None = None) -> str:
    try:
        size = output.read_piece(path, 0, 0, folder=folder).size
        return output.read_piece(path, size - n_bytes, n_bytes, folder=folder).content.decode(errors="replace")
    except OSError:
        return ""


def ending_reports(watched: Watched, ending: dict[str, Any]) -> list[NodeReport]:
    """Everything that is still to be said about an attempt whose exit record is there; its end is last."""
    if "launch_error" in ending:
        failure = ending["launch_error"]
        if failure.get("is_sandbox"):
            return [_not_sealed(watched, failure["text"])]
        return [not_launched(watched, failure["errno"], failure["text"])]
    reports = started_report(watched) + metrics_report(watched, is_final=True)
    reports.append(
        Exited(
            key=watched.key,
            generation=watched.generation,
            exit_code=ending["exit_code"],
            was_killed=ending["was_killed"],
            ended_at_s=ending["ended_at"],
            log_tail=log_tail(watched),
            rank_tails=rank_tails(watched),
            checkpoint_step=newest_checkpoint(watched),
            supervisor_lost=ending.get("supervisor_lost", False),
            node_restarted=ending.get("node_restarted", False),
            oom_killed=ending.get("oom_killed", False),
            run_s=ending.get("run_s"),
            cpu_s=ending.get("cpu_s"),
            peak_memory_mb=ending.get("peak_memory_mb"),
        )
    )
    return reports


def not_launched(watched: Watched, number: int | None, text: str) -> NotLaunched:
    """From the error number of what failed before the command ran."""
    reason, advice = ExitReason.BAD_COMMAND, ""
    if number in _FULL:
        reason, advice = ExitReason.DISK_FULL, ": free some space where nightlab keeps its attempts"
    elif number in _NOT_THE_COMMAND:
        reason = ExitReason.LAUNCHER_UNAVAILABLE
    return NotLaunched(key=watched.key, generation=watched.generation, exit_reason=reason, evidence=f"{text}{advice}")


def _not_sealed(watched: Watched, text: str) -> NotLaunched:
    evidence = f"{text}. It could be had when the server started: start it again, and `nightlab node list` says why not"
    reason = ExitReason.SANDBOX_UNAVAILABLE
    return NotLaunched(key=watched.key, generation=watched.generation, exit_reason=reason, evidence=evidence)


def lost_record(was_killed: bool, *, is_of_earlier_boot: bool) -> dict[str, Any]:
    """The exit record that the engine writes in place of a lost supervisor."""
    record = {"exit_code": None, "was_killed": was_killed, "ended_at": time.time(), "supervisor_lost": True}
    return {**record, "node_restarted": True} if is_of_earlier_boot else record


def is_of_earlier_boot(supervisor: dict[str, Any], boot_id: str) -> bool:
    """Whether the machine was restarted since that supervisor claimed its attempt."""
    return bool(supervisor.get("boot_id", boot_id) != boot_id)


def _say_in_log(watched: Watched, text: str) -> None:
    flags = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
    try:
        with os.fdopen(os.open(watched.prepared.folder / records.LOG, flags), "wb") as file:
            file.write(f"nightlab: {text}\n".encode())
    except OSError:
        return
