"""A job that puts strange things where the runtime keeps its files: neither the engine nor other jobs suffer."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine
from pathlib import Path

import pytest
from local_engine_lab import job, local_engine, local_lab, run_to_end

from runtime.engines.conformance import opened
from runtime.engines.contract import AttemptKey, Exited, LogPiece, Started
from runtime_client.models import StdoutPattern

IN_ITS_FOLDER = 'cd "$(dirname "$HYPERPARAMETERS_PATH")"; '
KEY = AttemptKey(job_id="j1", attempt=1)


def within_seconds(work: Coroutine[None, None, None]) -> None:
    """What waits for a pipe would hold the test up for ever."""
    asyncio.run(asyncio.wait_for(work, 20))


@pytest.mark.parametrize("replace", ["mkfifo out.log", "mkdir out.log", "ln -s /etc/passwd out.log"])
def test_an_output_file_that_was_replaced_holds_nothing(tmp_path: Path, replace: str) -> None:
    async def run() -> None:
        async with local_lab(tmp_path) as lab:
            ended = await run_to_end(lab, job(f"{IN_ITS_FOLDER} echo hello; rm out.log; {replace}"))
            assert (ended.exit_code, ended.log_tail) == (0, "")
            assert await lab.engine.read_log(KEY, 0, 1000) == LogPiece(start=0, content=b"", size=0)

    within_seconds(run())


@pytest.mark.parametrize("body", ["[]", "{}", '{"exit_code": "0"}', '{"launch_error": 1}', '{"void": true}'])
def test_an_exit_record_that_is_none_of_ours_is_not_believed(tmp_path: Path, body: str) -> None:
    async def run() -> None:
        async with local_lab(tmp_path, sweep_s=0.02) as lab:
            forge = f"{IN_ITS_FOLDER} echo '{body}' > exit.json; sleep 0.2; exit 3"
            assert (await run_to_end(lab, job(forge))).exit_code == 3

    within_seconds(run())


def test_a_pipe_in_place_of_a_stop_order_does_not_hold_the_supervisor(tmp_path: Path) -> None:
    async def run() -> None:
        async with local_lab(tmp_path, sweep_s=0.02) as lab:
            poke = f"{IN_ITS_FOLDER} mkfifo stop.json; kill -USR1 $PPID; sleep 0.1; exit 4"
            assert (await run_to_end(lab, job(poke))).exit_code == 4

    within_seconds(run())


@pytest.mark.parametrize(
    "replace", ["ln -s checkpoints checkpoints", "mkfifo checkpoints", "ln -s /nowhere checkpoints"]
)
def test_no_checkpoint_where_the_folder_was_replaced(tmp_path: Path, replace: str) -> None:
    async def run() -> None:
        async with local_lab(tmp_path, sweep_s=0.02) as lab:
            ended = await run_to_end(lab, job(f"{IN_ITS_FOLDER} cd ..; rmdir checkpoints; {replace}; sleep 0.1"))
            assert (ended.exit_code, ended.checkpoint_step) == (0, None)

    within_seconds(run())


@pytest.mark.parametrize("body", ['{"positions": [{}]}', '{"positions": [7]}', "{}", "no json"])
def test_a_successor_adopts_an_attempt_whose_reading_positions_are_garbage(tmp_path: Path, body: str) -> None:
    spoil = f"{IN_ITS_FOLDER} echo 'loss 1'; sleep 0.1; echo '{body}' > metrics.json; read x < ../../../go; exit 5"
    launch = job(spoil, metric_sources=(StdoutPattern(pattern=r"loss (?P<loss>\S+)"),))
    metrics = tmp_path / "attempts" / "j1" / "1" / "metrics.json"

    async def run() -> None:
        os.mkfifo(tmp_path / "go")
        async with local_lab(tmp_path, sweep_s=60.0) as lab:
            await lab.engine.start(launch, 1)
            await lab.next(Started, KEY)
            await lab.until(lambda: body in metrics.read_text(), "garbage")
            async with opened(local_engine(tmp_path)) as successor:
                await successor.engine.adopt([launch], 2)
                (tmp_path / "go").write_text("\n")
                assert (await successor.next(Exited, KEY)).exit_code == 5

    within_seconds(run())
