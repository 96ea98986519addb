"""A local engine on a temporary home, and questions about processes, for tests with real ones."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from runtime.engines.conformance import DEADLINE_S, Lab, opened, order
from runtime.engines.contract import Exited, LaunchOrder
from runtime.engines.local import LocalEngine
from runtime.node import processes
from runtime_client.models import JobSpec


def local_engine(home: Path, *, environ: Mapping[str, str] | None = None, **options: Any) -> LocalEngine:
    settings: dict[str, Any] = {"devices": "cpu:2", "sweep_s": 0.1, "attempts_dir": home / "attempts", **options}
    return LocalEngine(home=home, environ=dict(os.environ) if environ is None else environ, **settings)


@asynccontextmanager
async def local_lab(home: Path, **options: Any) -> AsyncIterator[Lab]:
    """An open local engine. Attempts still running at the end are killed by a successor that knows none of them."""
    try:
        async with opened(local_engine(home, **options)) as lab:
            yield lab
    finally:
        successor = local_engine(home, **options)
        async with opened(successor):
            await successor.adopt([], 99)


def job(command: str | tuple[str, ...], *, job_id: str = "j1", attempt: int = 1, **fields: Any) -> LaunchOrder:
    resume_step = fields.pop("resume_step", None)
    spec = JobSpec(experiment_name="x", command=command, **fields)
    return order("x", job_id=job_id, attempt=attempt, spec=spec, resume_step=resume_step)


async def run_to_end(lab: Lab, launch: LaunchOrder) -> Exited:
    await lab.engine.start(launch, 1)
    return await lab.next(Exited, launch.key)


def alive(pids: Iterable[int]) -> set[int]:
    """Those of the pids that still run; zombies do not."""
    return {pid for pid in pids if (found := processes.look_up(pid)) is not None and not found.is_zombie}


async def eventually(condition: Callable[[], object], what: str, deadline_s: float = DEADLINE_S) -> None:
    end = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < end, f"not within {deadline_s} s: {what}"
        await asyncio.sleep(0.01)


async def pids_in(path: Path, n: int) -> set[int]:
    """The pids that a job wrote into a file, one a line, once there are n."""

    def read() -> list[int]:
        return [int(line) for line in path.read_text().split()] if path.exists() else []

    await eventually(lambda: len(read()) == n, f"{n} pids in {path}")
    return set(read())
