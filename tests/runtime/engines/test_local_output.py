"""Output of real processes: bounded on disk, whole at a preemption, and told apart by rank."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from local_engine_lab import job, local_lab, run_to_end

from runtime.engines.contract import Exited, LaunchOrder, Started, StopAttempt
from runtime.model.nouns import Placement
from runtime.model.states import StopCause

MIB = 2**20
FLOOD = """
import os
line = b"x" * 99 + b"\\n"
os.write(1, b"the first line\\n")
for _ in range({n_mib}):
    os.write(1, line * (2**20 // 100))
os.write(1, b"the last line\\n")
"""


async def read_all(lab: object, launch: LaunchOrder, stream: str = "main") -> tuple[bytes, int]:
    content, offset, n_cut = b"", 0, 0
    while True:
        piece = await lab.engine.read_log(launch.key, offset, 4 * MIB, stream)  # type: ignore[attr-defined]
        content, n_cut = content + piece.content, n_cut + piece.n_cut
        if not piece.content:
            return content, n_cut
        offset = piece.start + len(piece.content)


def flood(tmp_path: Path, n_mib: int, cap: int) -> None:
    async def run() -> None:
        async with local_lab(tmp_path, log_cap_bytes=cap) as lab:
            launch = job((sys.executable, "-c", FLOOD.format(n_mib=n_mib)))
            ended = await run_to_end(lab, launch)
            assert ended.exit_code == 0
            assert ended.log_tail.endswith("the last line\n")
            (log,) = tmp_path.glob("attempts/j1/1/out.log")
            assert log.stat().st_size > n_mib * MIB * 0.99
            assert log.stat().st_blocks * 512 <= cap
            content, n_cut = await read_all(lab, launch)
            assert content.startswith(b"the first line\n")
            assert content.endswith(b"the last line\n")
            assert n_cut > n_mib * MIB - cap - 100

    asyncio.run(run())


def test_a_job_that_prints_much_keeps_within_its_bound(tmp_path: Path) -> None:
    flood(tmp_path, 40, 4 * MIB)


@pytest.mark.kills
def test_a_job_that_prints_a_gigabyte_does_not_fill_the_disk(tmp_path: Path) -> None:
    flood(tmp_path, 1024, 64 * MIB)


def test_no_output_is_lost_at_a_preemption_and_the_last_line_needs_no_end(tmp_path: Path) -> None:
    script = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: (sys.stdout.write("saving, without an end"), sys.exit(75)))
print("step 1")
time.sleep(60)
"""

    async def run() -> None:
        async with local_lab(tmp_path) as lab:
            launch = job((sys.executable, "-c", script))
            await lab.engine.start(launch, 1)
            await lab.next(Started, launch.key)
            await lab.until_log(launch.key, b"step 1\n")
            await lab.engine.stop(StopAttempt(key=launch.key, cause=StopCause.PREEMPT, reason="x", grace_s=20.0), 1)
            ended = await lab.next(Exited, launch.key)
            assert ended.exit_code == 75
            assert ended.log_tail == "step 1\nsaving, without an end"

    asyncio.run(run())


def test_what_ranks_write_to_their_folder_is_theirs(tmp_path: Path) -> None:
    async def run() -> None:
        async with local_lab(tmp_path) as lab:
            launch = job('for r in 0 1; do echo "I am $r" > $NIGHTLAB_RANK_LOG_DIR/rank_$r.log; done; echo all; exit 3')
            ended = await run_to_end(lab, launch)
            assert [(tail.rank, tail.text) for tail in ended.rank_tails] == [(0, "I am 0\n"), (1, "I am 1\n")]
            assert await lab.engine.log_streams(launch.key) == ("main", "0", "1")
            assert await read_all(lab, launch, "1") == (b"I am 1\n", 0)

    asyncio.run(run())


@pytest.mark.parametrize(("devices", "expected"), [((0,), "\n"), ((0, 1), "3 1\n")])
def test_torchrun_is_told_to_keep_a_file_for_each_rank_of_a_gang(
    tmp_path: Path, devices: tuple[int, ...], expected: str
) -> None:
    async def run() -> None:
        async with local_lab(tmp_path) as lab:
            command = 'echo $PET_TEE $(test "$PET_LOG_DIR" = "$NIGHTLAB_RANK_LOG_DIR" && echo 1)'
            placed = Placement(node_id="local", devices=devices, first_rank=0)
            ended = await run_to_end(lab, replace(job(command), placements=(placed,)))
            assert ended.log_tail == expected

    asyncio.run(run())


def test_the_notice_tells_when_the_kill_comes(tmp_path: Path) -> None:
    script = """
import os, signal, sys, time
stopped = []
signal.signal(signal.SIGTERM, lambda *_: stopped.append(time.time()))
print("ready")
while not stopped:
    time.sleep(0.01)
left = float(open(os.environ["NIGHTLAB_PREEMPT_FILE"]).read()) - time.time()
print("left", round(left))
sys.exit(75)
"""

    async def run() -> None:
        async with local_lab(tmp_path) as lab:
            launch = job((sys.executable, "-c", script))
            await lab.engine.start(launch, 1)
            await lab.until_log(launch.key, b"ready")
            await lab.engine.stop(StopAttempt(key=launch.key, cause=StopCause.PREEMPT, reason="x", grace_s=20.0), 1)
            ended = await lab.next(Exited, launch.key)
            assert ended.log_tail in ("ready\nleft 20\n", "ready\nleft 19\n")

    asyncio.run(run())
