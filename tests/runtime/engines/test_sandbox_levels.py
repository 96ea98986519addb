"""The sandbox level of a job: what it is held to, and what is told of it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from local_engine_lab import job, local_lab
from pydantic import ValidationError

from runtime.engines.contract import Exited, Started
from runtime.model.nouns import SandboxReached
from runtime_client.models import JobSpec, Sandbox

ASK = "grep NoNewPrivs /proc/self/status; echo core `ulimit -c`"


async def started_and_ended(home: Path, command: str, **fields: Any) -> tuple[Started, Exited]:
    async with local_lab(home) as lab:
        launch = job(command, **fields)
        await lab.engine.start(launch, 1)
        return await lab.next(Started, launch.key), await lab.next(Exited, launch.key)


def test_a_job_can_not_gain_rights_unless_it_says_none(tmp_path: Path) -> None:
    started, ended = asyncio.run(started_and_ended(tmp_path / "user", ASK))
    assert ended.log_tail.split() == ["NoNewPrivs:", "1", "core", "0"]
    assert started.sandbox == SandboxReached(level="user", layers=("no_new_privs", "rlimit"))
    started, ended = asyncio.run(started_and_ended(tmp_path / "none", ASK, sandbox=Sandbox.NONE))
    assert ended.log_tail.split()[:2] == ["NoNewPrivs:", "0"]
    assert started.sandbox == SandboxReached(level="none", layers=())


def test_a_spec_of_an_older_release_reads_as_user() -> None:
    spec = JobSpec.model_validate({"experiment_name": "x", "command": "true"})
    assert spec.sandbox is Sandbox.USER


@pytest.mark.parametrize("readable", ["data", "/", "//", "/a/..", "/a\0b"])
def test_readable_names_absolute_places_below_the_root(readable: str) -> None:
    with pytest.raises(ValidationError, match="absolute paths"):
        JobSpec.model_validate({"experiment_name": "x", "command": "true", "sandbox": "sealed", "readable": [readable]})


def test_what_binds_sealed_jobs_alone_is_refused_for_others() -> None:
    with pytest.raises(ValidationError, match="only a sealed job"):
        JobSpec.model_validate({"experiment_name": "x", "command": "true", "readable": ["/data"]})
