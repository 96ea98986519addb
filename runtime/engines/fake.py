"""An engine without processes: attempts are entries that tests move along by hand, or by a script.

It keeps the promises of the contract (the conformance suite runs on it): one launch per attempt, nothing after the
end, adoption, strangers ended, reports fenced by generation.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from runtime.engines.contract import (
    MAIN_STREAM,
    AttemptKey,
    Checkpointed,
    DevicesSeen,
    Exited,
    LaunchOrder,
    LogPiece,
    MetricsRead,
    NodeReport,
    NotLaunched,
    Started,
    StopAttempt,
)
from runtime.model.nouns import Device, Node
from runtime.model.root_cause import RankTail
from runtime.model.states import EXIT_REQUEUE, LEAVING, ExitReason


class Script(Protocol):
    """What attempts do by themselves. Called with the engine, so that it can move the attempt along."""

    def started(self, engine: FakeEngine, order: LaunchOrder) -> None:
        """Right after `Started`."""
        ...

    def stopped(self, engine: FakeEngine, order: StopAttempt) -> None:
        """Right after a stop order arrived."""
        ...


class Obedient:
    """Runs until it is stopped; then it checkpoints and asks to be requeued, or dies of SIGTERM when cancelled."""

    def started(self, engine: FakeEngine, order: LaunchOrder) -> None:
        return

    def stopped(self, engine: FakeEngine, order: StopAttempt) -> None:
        if order.grace_s <= 0:
            engine.finish(order.key, exit_code=-9, was_killed=True)
        elif order.cause in LEAVING:
            engine.finish(order.key, exit_code=EXIT_REQUEUE)
        else:
            engine.finish(order.key, exit_code=-15)


class ByHand:
    """Nothing happens unless the test makes it happen."""

    def started(self, engine: FakeEngine, order: LaunchOrder) -> None:
        return

    def stopped(self, engine: FakeEngine, order: StopAttempt) -> None:
        return


@dataclass(slots=True, kw_only=True)
class FakeAttempt:
    order: LaunchOrder
    generation: int
    log: bytes = b""
    rank_logs: dict[str, bytes] = field(default_factory=dict)
    """Streams of ranks by name (`0`, `0.err`)."""
    checkpoint_step: int | None = None
    ending: Exited | NotLaunched | None = None


@dataclass(slots=True, kw_only=True)
class Refusal:
    """The next launches that can not happen."""

    exit_reason: ExitReason
    evidence: str


def fake_node(node_id: str = "local", *, n_devices: int = 2, kind: str = "cpu") -> Node:
    """A node with that many pretend devices."""
    devices = tuple(Device(index=i, kind=kind, uuid=f"{node_id}-{i}", is_fake=True) for i in range(n_devices))
    return Node(
        node_id=node_id,
        generation=0,
        boot_id=f"boot-{node_id}",
        hostname=node_id,
        cpus=n_devices,
        memory_mb=1024 * n_devices,
        devices=devices,
    )


@dataclass(slots=True, kw_only=True)
class FakeEngine:
    """Implements `Engine` in memory. May be opened again after `close`, as a new server would find it."""

    nodes: Sequence[Node] = field(default_factory=lambda: (fake_node(),))
    script: Script = field(default_factory=Obedient)
    clock: Callable[[], float] = time.time
    """Seconds since the epoch, for reports."""
    free: int = 10**12
    """Bytes that `free_bytes` answers."""
    attempts: dict[AttemptKey, FakeAttempt] = field(default_factory=dict)
    """All that were ever launched or refused, by key."""
    stops: list[StopAttempt] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    """Consumed one per launch, from the front."""
    _report: Callable[[NodeReport], None] | None = None

    async def open(self, report: Callable[[NodeReport], None]) -> Sequence[Node]:
        self._report = report
        return self.nodes

    async def adopt(self, running: Sequence[LaunchOrder], generation: int) -> None:
        named = {order.key for order in running}
        for key, stranger in self.attempts.items():
            if key not in named and stranger.ending is None:
                stranger.ending = self._exited(stranger, exit_code=-9, was_killed=True)
        for order in running:
            attempt = self.attempts.get(order.key)
            if attempt is None:
                await self.start(order, generation)
                continue
            attempt.generation = generation
            if attempt.ending is None:
                self._say_started(attempt)
            else:
                self._say(replace(attempt.ending, generation=generation))

    async def start(self, order: LaunchOrder, generation: int) -> None:
        known = self.attempts.get(order.key)
        if known is not None:
            known.generation = generation
            return
        attempt = self.attempts[order.key] = FakeAttempt(order=order, generation=generation)
        if self.refusals:
            refusal = self.refusals.pop(0)
            attempt.ending = NotLaunched(
                key=order.key,
                generation=generation,
                exit_reason=refusal.exit_reason,
                evidence=refusal.evidence,
            )
            self._say(attempt.ending)
            return
        self._say_started(attempt)
        self.script.started(self, order)

    async def stop(self, order: StopAttempt, generation: int) -> None:
        self.stops.append(order)
        attempt = self.attempts.get(order.key)
        if attempt is None:
            reason, evidence = ExitReason.LAUNCHER_UNAVAILABLE, "it was never started on this node"
            self._say(NotLaunched(key=order.key, generation=generation, exit_reason=reason, evidence=evidence))
            return
        attempt.generation = generation
        if attempt.ending is None:
            self.script.stopped(self, order)

    async def read_log(self, key: AttemptKey, offset: int, limit: int, stream: str = MAIN_STREAM) -> LogPiece:
        attempt = self.attempts.get(key)
        log = b"" if attempt is None else attempt.log if stream == MAIN_STREAM else attempt.rank_logs.get(stream, b"")
        start = min(max(0, offset), len(log))
        return LogPiece(start=start, content=log[start:][: max(0, limit)], size=len(log))

    async def log_streams(self, key: AttemptKey) -> Sequence[str]:
        attempt = self.attempts.get(key)
        return (MAIN_STREAM, *(sorted(attempt.rank_logs) if attempt is not None else ()))

    async def signs_of_life(self, keys: Sequence[AttemptKey]) -> Mapping[AttemptKey, int]:
        found = {key: self.attempts[key] for key in keys if key in self.attempts}
        return {key: len(one.log) + sum(map(len, one.rank_logs.values())) for key, one in found.items()}

    async def dump_stacks(self, key: AttemptKey) -> str | None:
        return f"pretended stacks of {key.job_id}" if key in self.attempts else None

    async def free_bytes(self) -> int:
        return self.free

    async def close(self) -> None:
        self._report = None

    def finish(
        self,
        key: AttemptKey,
        *,
        exit_code: int | None = 0,
        was_killed: bool = False,
        supervisor_lost: bool = False,
        node_restarted: bool = False,
        oom_killed: bool = False,
    ) -> None:
        """The attempt ends. Raises KeyError for an unknown one, ValueError for one that has ended."""
        attempt = self._live(key)
        attempt.ending = self._exited(
            attempt,
            exit_code=exit_code,
            was_killed=was_killed,
            supervisor_lost=supervisor_lost,
            node_restarted=node_restarted,
            oom_killed=oom_killed,
        )
        self._say(attempt.ending)

    def fail(self, key: AttemptKey, *, exit_code: int = 1, log: str = "Traceback (most recent call last):\n") -> None:
        """The command fails by itself, with this at the end of its output."""
        self.print(key, log)
        self.finish(key, exit_code=exit_code)

    def checkpoint(self, key: AttemptKey, step: int) -> None:
        attempt = self._live(key)
        attempt.checkpoint_step = step
        self._say(Checkpointed(key=key, generation=attempt.generation, step=step))

    def see_devices(self, unfit: Mapping[int, str], *, node_id: str = "local") -> None:
        """Look at the devices of a node: these are not fit, for these reasons, and all others are."""
        node = next(node for node in self.nodes if node.node_id == node_id)
        devices = tuple(device.index for device in node.devices)
        self._say(DevicesSeen(node_id=node_id, devices=devices, unfit=tuple(sorted(unfit.items()))))

    def print(self, key: AttemptKey, text: str, *, stream: str = MAIN_STREAM) -> None:
        """The command writes to its output, or a rank to its own."""
        attempt = self._live(key)
        if stream == MAIN_STREAM:
            attempt.log += text.encode()
        else:
            attempt.rank_logs[stream] = attempt.rank_logs.get(stream, b"") + text.encode()

    def log_metric(self, key: AttemptKey, name: str, value: float, step: int = 0) -> None:
        """A declared metric source yields a point."""
        self._live(key)
        self._say(MetricsRead(key=key, points=((name, value, step, self.clock()),)))

    @property
    def running(self) -> tuple[AttemptKey, ...]:
        """Attempts that have not ended, in the order of their starts."""
        return tuple(key for key, attempt in self.attempts.items() if attempt.ending is None)

    def _live(self, key: AttemptKey) -> FakeAttempt:
        attempt = self.attempts[key]
        if attempt.ending is not None:
            raise ValueError(f"{key} has ended: {attempt.ending}")
        return attempt

    def _exited(
        self,
        attempt: FakeAttempt,
        *,
        exit_code: int | None,
        was_killed: bool,
        supervisor_lost: bool = False,
        node_restarted: bool = False,
        oom_killed: bool = False,
    ) -> Exited:
        return Exited(
            key=attempt.order.key,
            generation=attempt.generation,
            exit_code=exit_code,
            was_killed=was_killed,
            ended_at_s=self.clock(),
            log_tail=attempt.log[-65536:].decode(errors="replace"),
            rank_tails=tuple(
                RankTail(rank=int(stream.partition(".")[0]), text=log.decode(errors="replace"))
                for stream, log in sorted(attempt.rank_logs.items())
            ),
            checkpoint_step=attempt.checkpoint_step,
            supervisor_lost=supervisor_lost,
            node_restarted=node_restarted,
            oom_killed=oom_killed,
        )

    def _say_started(self, attempt: FakeAttempt) -> None:
        pid = 1000 + list(self.attempts).index(attempt.order.key)
        self._say(Started(key=attempt.order.key, generation=attempt.generation, pid=pid, at_s=self.clock()))

    def _say(self, report: NodeReport) -> None:
        if self._report is not None:
            self._report(report)
