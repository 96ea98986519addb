"""What every engine must do, as tests: subclass `EngineConformance`, give it an engine, let pytest collect it.

The programs are real commands (`PROGRAMS`), so that an engine with real processes runs them as they are; an engine
without processes finds the program's name in `experiment_name` and plays it.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from runtime.engines.contract import (
    MAIN_STREAM,
    AttemptKey,
    Checkpointed,
    Engine,
    Exited,
    LaunchOrder,
    LogPiece,
    NodeReport,
    NotLaunched,
    Started,
    StopAttempt,
)
from runtime.model.nouns import Node, Placement
from runtime.model.states import EXIT_REQUEUE, ExitReason, StopCause
from runtime_client.models import Environment, JobSpec

DEADLINE_S = 20.0
"""Far more than anything here takes on a quiet machine."""

PROGRAMS = {
    "says-hello": "echo hello",
    "exits-3": "echo oh no; exit 3",
    "dies-of-a-signal": "kill -SEGV $$",
    "runs-for-ever": "echo ready; while :; do sleep 0.1; done",
    "checkpoints-when-asked": (
        "trap 'test -e $NIGHTLAB_PREEMPT_FILE && mkdir $NIGHTLAB_CHECKPOINT_DIR/step-7"
        " && touch $NIGHTLAB_CHECKPOINT_DIR/step-7/COMPLETE && exit 75' TERM; echo ready; while :; do sleep 0.05; done"
    ),
    "ignores-term": "trap '' TERM; echo ready; while :; do sleep 0.1; done",
    "checkpoints": (
        "mkdir $NIGHTLAB_CHECKPOINT_DIR/step-5 && touch $NIGHTLAB_CHECKPOINT_DIR/step-5/COMPLETE; echo ready;"
        " while :; do sleep 0.1; done"
    ),
}

_R = TypeVar("_R")


def order(
    program: str, *, job_id: str = "j1", attempt: int = 1, spec: JobSpec | None = None, resume_step: int | None = None
) -> LaunchOrder:
    """A launch order for one of `PROGRAMS` (or for another spec) on the first device of node `local`."""
    wanted = spec or JobSpec(experiment_name=program, command=PROGRAMS[program])
    return LaunchOrder(
        key=AttemptKey(job_id=job_id, attempt=attempt),
        placements=(Placement(node_id="local", devices=(0,), first_rank=0),),
        spec_json=wanted.model_dump_json(),
        attempt_token=f"{job_id}.{attempt}.{secrets.token_hex(8)}",
        tracking_url="http://127.0.0.1:9",
        resume_step=resume_step,
        device_kinds=("cpu",),
    )


def stop(of: LaunchOrder, *, grace_s: float, cause: StopCause = StopCause.PREEMPT) -> StopAttempt:
    return StopAttempt(key=of.key, cause=cause, reason="for j9", grace_s=grace_s)


class Lab:
    """An open engine and everything it has reported."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.reports: list[NodeReport] = []
        self.nodes: tuple[Node, ...] = ()
        self._news = asyncio.Event()

    async def open(self) -> None:
        self.nodes = tuple(await self.engine.open(self._note))

    def _note(self, report: NodeReport) -> None:
        self.reports.append(report)
        self._news.set()

    def all(self, kind: type[_R]) -> list[_R]:
        return [report for report in self.reports if isinstance(report, kind)]

    async def next(self, kind: type[_R], key: AttemptKey, *, deadline_s: float = DEADLINE_S) -> _R:
        """The first report of that kind on that attempt. Raises AssertionError when none comes in time."""

        def found() -> _R | None:
            return next((r for r in self.all(kind) if getattr(r, "key", None) == key), None)

        report = await self.until(found, f"{kind.__name__} of {key}", deadline_s=deadline_s)
        assert report is not None
        return report

    async def until(self, condition: Callable[[], _R], what: str, *, deadline_s: float = DEADLINE_S) -> _R:
        """Wait for a condition that holds after some report, or soon after. Raises AssertionError."""
        loop = asyncio.get_running_loop()
        end = loop.time() + deadline_s
        while not (result := condition()):
            assert loop.time() < end, f"no {what} within {deadline_s} s; reports: {self.reports}"
            self._news.clear()
            try:
                await asyncio.wait_for(self._news.wait(), 0.02)
            except TimeoutError:
                continue
        return result

    async def log(self, key: AttemptKey) -> bytes:
        return (await self.engine.read_log(key, 0, 1 << 20)).content

    async def until_log(self, key: AttemptKey, text: bytes) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + DEADLINE_S
        while text not in await self.log(key):
            assert loop.time() < end, f"no {text!r} in {await self.log(key)!r}"
            await asyncio.sleep(0.02)


@asynccontextmanager
async def opened(engine: Engine) -> AsyncIterator[Lab]:
    """The engine, open; closed at the end."""
    lab = Lab(engine)
    await lab.open()
    try:
        yield lab
    finally:
        await engine.close()


class EngineConformance:
    """Subclasses give `engine`; the fixture `home` is any empty folder."""

    def engine(self, home: Path) -> Engine:
        """The engine on that home. Asked again for the same home: as a new server would make it."""
        raise NotImplementedError

    def test_opens_with_nodes_that_have_devices(self, home: Path) -> None:
        async def run() -> None:
            async with opened(self.engine(home)) as lab:
                assert [n.node_id for n in lab.nodes] == ["local"]
                assert lab.nodes[0].devices
                assert await lab.engine.free_bytes() > 0

        asyncio.run(run())

    def test_reports_start_and_end_with_key_and_generation(self, home: Path) -> None:
        async def run() -> None:
            async with opened(self.engine(home)) as lab:
                hello = order("says-hello")
                await lab.engine.start(hello, 4)
                ended = await lab.next(Exited, hello.key)
                assert [type(r) for r in lab.reports] == [Started, Exited]
                assert lab.all(Started)[0].generation == ended.generation == 4
                assert (ended.exit_code, ended.was_killed, ended.supervisor_lost) == (0, False, False)
                assert ended.log_tail == "hello\n"

        asyncio.run(run())

    def test_passes_on_exit_codes_and_signals(self, home: Path) -> None:
        async def run() -> None:
            async with opened(self.engine(home)) as lab:
                failing, crashing = order("exits-3"), order("dies-of-a-signal", job_id="j2")
                await lab.engine.start(failing, 1)
                await lab.engine.start(crashing, 1)
                assert (await lab.next(Exited, failing.key)).exit_code == 3
                assert (await lab.next(Exited, crashing.key)).exit_code == -11

        asyncio.run(run())

    def test_log_is_read_from_any_offset(self, home: Path) -> None:
        async def run() -> None:
            async with opened(self.engine(home)) as lab:
                hello = order("says-hello")
                await lab.engine.start(hello, 1)
                await lab.next(Exited, hello.key)
                read = lab.engine.read_log
                assert await read(hello.key, 0, 3) == LogPiece(start=0, content=b"hel", size=6)
                assert await read(hello.key, 3, 100) == LogPiece(start=3, content=b"lo\n", size=6)
                assert await read(hello.key, 99, 100) == LogPiece(start=6, content=b"", size=6)
                assert (await read(AttemptKey(job_id="j404", attempt=1), 0, 9)).content == b""
                assert (await read(hello.key, 0, 9, "7")).content == b""
                assert await lab.engine.log_streams(hello.key) == (MAIN_STREAM,)

        asyncio.run(run())

    def test_starting_twice_launches_once(self, home: Path) -> None:
        async def run() -> None:
            async with opened(self.engine(home)) as lab:
                hello = order("says-hello")
                await asyncio.gather(*(lab.engine.start(hello, 1) for _ in range(5)))
                await lab.next(Exited, hello.key)
                assert await lab.log(hello.key) == b"hello\n"
                assert len(lab.all(Exited)) == len(lab.all(Started)) == 1

        asyncio.run(run())

    def test_stop_gives_notice_and_time_to_checkpoint(self, home: Path) -> None:
        async def run() -> None:
            async with opened(self.engine(home)) as lab:
                job = order("checkpoints-when-asked")
                await lab.engine.start(job, 1)
                await lab.until_log(job.key, b"ready")
                await lab.engine.stop(stop(job, grace_s=DEADLINE_S), 1)
                ended = await lab.next(Exited, job.key)
                assert (ended.exit_code, ended.checkpoint_step) == (EXIT_REQUEUE, 7)

        asyncio.run(run())

    def test_kills_what_does_not_leave_within_the_grace(self, home: Path) -> None:
        async def run() -> None:
            async with opened(self.engine(home)) as lab:
                job = order("ignores-term")
                await lab.engine.start(job, 1)
                await lab.until_log(job.key, b"ready")
                await lab.engine.stop(stop(job, grace_s=0.2), 1)
                ended = await lab.next(Exited, job.key)
                assert (ended.exit_code, ended.was_killed) == (-9, True)

        asyncio.run(run())

    def test_kills_at_once_without_grace(self, home: Path) -> None:
        async def run() -> None:
            async with opened(self.engine(home)) as lab:
                job = order("checkpoints-when-asked")
                await lab.engine.start(job, 1)
                await lab.until_log(job.key, b"ready")
                await lab.engine.stop(stop(job, grace_s=0, cause=StopCause.CANCEL), 1)
                ended = await lab.next(Exited, job.key)
                assert (ended.exit_code, ended.was_killed, ended.checkpoint_step) == (-9, True, None)

        asyncio.run(run())

    def test_a_second_stop_can_shorten_the_grace(self, home: Path) -> None:
        async def run() -> None:
            async with opened(self.engine(home)) as lab:
                job = order("ignores-term")
                await lab.engine.start(job, 1)
                await lab.until_log(job.key, b"ready")
                await lab.engine.stop(stop(job, grace_s=3600), 1)
                await lab.engine.stop(stop(job, grace_s=0, cause=StopCause.CANCEL), 1)
                assert (await lab.next(Exited, job.key)).was_killed

        asyncio.run(run())

    def test_reports_checkpoints_while_it_runs(self, home: Path) -> None:
        async def run() -> None:
            async with opened(self.engine(home)) as lab:
                job = order("checkpoints")
                await lab.engine.start(job, 1)
                assert (await lab.next(Checkpointed, job.key)).step == 5
                await lab.engine.stop(stop(job, grace_s=0), 1)
                assert (await lab.next(Exited, job.key)).checkpoint_step == 5

        asyncio.run(run())

    def test_what_can_not_be_launched_is_never_started(self, home: Path) -> None:
        async def run() -> None:
            async with opened(self.engine(home)) as lab:
                spec = JobSpec(
                    experiment_name="no-python", command="python x.py", environment=Environment(python="/no/python")
                )
                job = order("no-python", spec=spec)
                await lab.engine.start(job, 2)
                refused = await lab.next(NotLaunched, job.key)
                assert (refused.exit_reason, refused.generation) == (ExitReason.BAD_PYTHON, 2)
                assert lab.reports == [refused]

        asyncio.run(run())

    def test_stop_for_an_attempt_that_never_was_is_answered(self, home: Path) -> None:
        async def run() -> None:
            async with opened(self.engine(home)) as lab:
                job = order("says-hello")
                await lab.engine.stop(stop(job, grace_s=1), 1)
                await lab.next(NotLaunched, job.key)

        asyncio.run(run())

    def test_attempts_outlive_the_engine_and_are_adopted(self, home: Path) -> None:
        async def run() -> None:
            job = order("checkpoints-when-asked")
            async with opened(self.engine(home)) as first:
                await first.engine.start(job, 1)
                pid = (await first.next(Started, job.key)).pid
                await first.until_log(job.key, b"ready")
            async with opened(self.engine(home)) as second:
                await second.engine.adopt([job], 2)
                started = await second.next(Started, job.key)
                assert (started.pid, started.generation) == (pid, 2)
                await second.engine.stop(stop(job, grace_s=DEADLINE_S), 2)
                ended = await second.next(Exited, job.key)
                assert (ended.exit_code, ended.generation) == (EXIT_REQUEUE, 2)
                assert not first.all(Exited)

        asyncio.run(run())

    def test_adopting_what_ended_meanwhile_reports_its_end(self, home: Path) -> None:
        async def run() -> None:
            job = order("exits-3")
            async with opened(self.engine(home)) as first:
                await first.engine.start(job, 1)
                await first.next(Exited, job.key)
            async with opened(self.engine(home)) as second:
                await second.engine.adopt([job], 2)
                ended = await second.next(Exited, job.key)
                assert ended.exit_code == 3
                assert "oh no" in ended.log_tail

        asyncio.run(run())

    def test_adopting_what_was_never_launched_launches_it(self, home: Path) -> None:
        async def run() -> None:
            async with opened(self.engine(home)) as lab:
                hello = order("says-hello")
                await lab.engine.adopt([hello], 3)
                assert (await lab.next(Exited, hello.key)).generation == 3

        asyncio.run(run())

    def test_strangers_are_ended_at_adoption(self, home: Path) -> None:
        async def run() -> None:
            known, stranger = order("runs-for-ever"), order("ignores-term", job_id="j2")
            async with opened(self.engine(home)) as first:
                for job in (known, stranger):
                    await first.engine.start(job, 1)
                    await first.until_log(job.key, b"ready")
            async with opened(self.engine(home)) as second:
                await second.engine.adopt([known], 2)
                await second.next(Started, known.key)
                # Named again later, its end is told: it was killed.
                await second.engine.adopt([known, replace(stranger)], 2)
                assert (await second.next(Exited, stranger.key)).was_killed
                await second.engine.stop(stop(known, grace_s=0), 2)
                await second.next(Exited, known.key)

        asyncio.run(run())
