"""Mounts that hang hold up one start, for a moment, and nothing else."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from runtime.model.states import ExitReason
from runtime.node.launch_errors import CannotLaunch
from runtime.node.mounts import check_answers, places_of
from runtime.node.patience import within
from runtime_client.models import CodeSource, Environment, JobSpec


def test_a_mount_that_hangs_is_named_and_the_loop_goes_on() -> None:
    is_back = threading.Event()
    n_beats = 0

    async def beat() -> None:
        nonlocal n_beats
        while True:
            n_beats += 1
            await asyncio.sleep(0.01)

    async def run() -> None:
        beating = asyncio.create_task(beat())
        with pytest.raises(CannotLaunch, match="/mnt/gone does not answer") as refused:
            await check_answers(("/mnt/gone",), patience_s=0.2, look=lambda path: is_back.wait(30))
        assert refused.value.exit_reason is ExitReason.LAUNCHER_UNAVAILABLE
        beating.cancel()

    asyncio.run(run())
    is_back.set()
    assert n_beats > 5


def test_what_is_not_there_is_left_to_the_checks_that_name_it(tmp_path: Path) -> None:
    asyncio.run(check_answers((str(tmp_path), str(tmp_path / "no such"))))


def test_the_folder_with_the_code_and_the_interpreter_are_touched() -> None:
    spec = JobSpec(
        experiment_name="x",
        command="t",
        code_source=CodeSource(root_path="/nfs/code"),
        environment=Environment(python="/nfs/env/bin/python"),
    )
    assert places_of(spec) == ("/nfs/code", "/nfs/env/bin/python")
    assert places_of(JobSpec(experiment_name="x", command="t")) == ()


def test_what_the_work_raises_or_returns_comes_through() -> None:
    assert asyncio.run(within(5, lambda: 7)) == 7

    def fail() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        asyncio.run(within(5, fail))
