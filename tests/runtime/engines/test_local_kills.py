"""The process that holds the engine is killed at many points of a launch: the command runs exactly once."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from local_engine_lab import eventually, job, local_engine, local_lab

from runtime.engines.conformance import opened
from runtime.engines.contract import Exited, LaunchOrder

HOLDER = """
import asyncio, os, pickle, sys
from pathlib import Path
from runtime.engines.local import LocalEngine

async def main():
    home = Path(sys.argv[1])
    order = pickle.loads((home / "order.pickle").read_bytes())
    engine = LocalEngine(home=home, attempts_dir=home / "attempts", devices="cpu:2", environ=dict(os.environ))
    await engine.open(lambda report: None)
    print("open", flush=True)
    sys.stdin.readline()
    print("starting", flush=True)
    await engine.start(order, 1)
    await asyncio.sleep(3600)

asyncio.run(main())
"""


async def start_and_kill(home: Path, launch: LaunchOrder, after_s: float) -> None:
    (home / "order.pickle").write_bytes(pickle.dumps(launch))
    root = Path(__file__).parents[3]
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(home)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    assert holder.stdin is not None
    assert holder.stdout is not None
    assert await asyncio.to_thread(holder.stdout.readline) == b"open\n"
    holder.stdin.write(b"go\n")
    holder.stdin.flush()
    assert await asyncio.to_thread(holder.stdout.readline) == b"starting\n"
    loop = asyncio.get_running_loop()
    end = loop.time() + after_s
    await eventually(lambda: loop.time() >= end, "the moment of the kill")
    holder.send_signal(signal.SIGKILL)
    holder.communicate()


@pytest.mark.kills
@pytest.mark.parametrize("after_ms", [0, 1, 2, 3, 4, 6, 8, 10, 15, 20, 30, 60])
def test_command_runs_exactly_once_whenever_the_server_is_killed(tmp_path: Path, after_ms: int) -> None:
    async def run() -> None:
        launch = job("echo ran >> $NIGHTLAB_CHECKPOINT_DIR/../runs; sleep 0.1; exit 6")
        await start_and_kill(tmp_path, launch, after_ms / 1000)
        async with local_lab(tmp_path) as lab:
            await lab.engine.adopt([launch], 2)
            ended = await lab.next(Exited, launch.key)
            assert (ended.exit_code, ended.supervisor_lost, len(lab.all(Exited))) == (6, False, 1)
        assert (tmp_path / "attempts" / "j1" / "runs").read_text() == "ran\n"

    asyncio.run(run())


@pytest.mark.kills
@pytest.mark.parametrize("after_ms", [0, 1, 2, 3, 5, 8, 13])
def test_a_supervisor_killed_at_any_moment_leaves_nothing_running(tmp_path: Path, after_ms: int) -> None:
    async def run() -> None:
        launch = job("(setsid sleep 1000000 &) ; exec sleep 1000000")
        folder = tmp_path / "attempts" / "j1" / "1"
        async with opened(local_engine(tmp_path)) as lab:
            await lab.engine.start(launch, 1)
            await eventually(lambda: (folder / "supervisor.json").exists(), "claim")
            loop = asyncio.get_running_loop()
            end = loop.time() + after_ms / 1000
            await eventually(lambda: loop.time() >= end, "the moment of the kill")
            os.kill(json.loads((folder / "supervisor.json").read_text())["pid"], signal.SIGKILL)
            assert (await lab.next(Exited, launch.key)).supervisor_lost
            order = json.loads((folder / "order.json").read_text())
            left = subprocess.run(
                ["grep", "-lsa", order["marker"], *[str(p) for p in Path("/proc").glob("[0-9]*/environ")]],
                capture_output=True,
                check=False,
            )
            assert left.stdout == b""

    asyncio.run(run())
