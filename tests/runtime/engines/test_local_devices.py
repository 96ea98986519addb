"""Devices that are shared with others, not empty, silent or faulty: seen, told, never given out, nobody touched.

The devices are played by a folder (see `PretendedProbe`); the processes on them are real.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from local_engine_lab import eventually, job, local_lab

from runtime.engines.conformance import Lab, stop
from runtime.engines.contract import DevicesSeen, Exited, LaunchOrder, NotLaunched, Started
from runtime.engines.device_watch import Looks
from runtime.model.states import ExitReason
from runtime.node import machine_locks
from runtime.node.device_probe import PRETENDED_VARIABLE, Sight

USES_ITS_DEVICE = """
import os, sys, time
folder = os.path.join(sys.argv[1], os.environ["NIGHTLAB_DEVICE_UUIDS"])
open(os.path.join(folder, str(os.getpid())), "w").write("40000")
print("ready", flush=True)
time.sleep(600)
"""


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A machine with two devices, nobody on them."""
    folder = tmp_path / "machine"
    for uuid in ("fake-0", "fake-1"):
        (folder / uuid).mkdir(parents=True)
    return folder


@pytest.fixture
def foreigner() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "600"])
    yield process
    process.kill()
    process.wait()


QUICK = Looks(every_s=0.05)


def shared(home: Path, machine: Path, **options: object) -> AbstractAsyncContextManager[Lab]:
    environ = {**os.environ, PRETENDED_VARIABLE: str(machine)}
    return local_lab(home, **{"devices": "fake:2xH100", "environ": environ, "looks": QUICK, **options})


async def a_while() -> None:
    """Several looks."""
    loop = asyncio.get_running_loop()
    end = loop.time() + 4 * QUICK.every_s
    await eventually(lambda: loop.time() >= end, "a while")


async def told(lab: Lab, **unfit: str) -> None:
    """Until the last look told exactly this: parts of the reasons, by `d0`, `d1`."""
    wanted = {int(name[1:]): text for name, text in unfit.items()}

    def is_told() -> bool:
        seen = lab.all(DevicesSeen)
        last = dict(seen[-1].unfit) if seen else None
        return last is not None and last.keys() == wanted.keys() and all(wanted[i] in last[i] for i in wanted)

    await lab.until(is_told, f"devices seen as {wanted}")


def test_a_foreign_process_makes_its_device_unfit_and_is_left_alone(
    tmp_path: Path, machine: Path, foreigner: subprocess.Popen[bytes]
) -> None:
    async def run() -> None:
        async with shared(tmp_path / "a", machine) as lab:
            await lab.engine.adopt([], 1)
            await told(lab)
            (machine / "fake-1" / str(foreigner.pid)).touch()
            await told(lab, d1=f"in use by sleep (pid {foreigner.pid}, user ")
            assert foreigner.poll() is None
            foreigner.kill()
            foreigner.wait()
            await told(lab)

    asyncio.run(run())


def test_nothing_is_launched_on_a_device_that_others_took_meanwhile(
    tmp_path: Path, machine: Path, foreigner: subprocess.Popen[bytes]
) -> None:
    async def run() -> None:
        async with shared(tmp_path / "a", machine) as lab:
            (machine / "fake-0" / str(foreigner.pid)).touch()
            launch = job("echo never")
            await lab.engine.start(launch, 1)
            refused = await lab.next(NotLaunched, launch.key)
            assert refused.exit_reason is ExitReason.DEVICE_UNAVAILABLE
            assert f"device 0: in use by sleep (pid {foreigner.pid}" in refused.evidence
            assert [type(report) for report in lab.reports] == [DevicesSeen, NotLaunched]
            assert foreigner.poll() is None

    asyncio.run(run())


def test_our_own_processes_do_not_make_a_device_unfit(tmp_path: Path, machine: Path) -> None:
    async def run() -> None:
        async with shared(tmp_path / "a", machine) as lab:
            await lab.engine.adopt([], 1)
            launch = replace(job((sys.executable, "-S", "-c", USES_ITS_DEVICE, str(machine))), device_kinds=("H100",))
            await lab.engine.start(launch, 1)
            await lab.until_log(launch.key, b"ready")
            await a_while()
            await lab.engine.stop(stop(launch, grace_s=0), 1)
            await lab.next(Exited, launch.key)
            assert [report.unfit for report in lab.all(DevicesSeen)] == [()]

    asyncio.run(run())


def test_a_device_is_free_only_when_it_is_empty(tmp_path: Path, machine: Path) -> None:
    async def run() -> None:
        async with shared(tmp_path / "a", machine) as lab:
            leftover = machine / "fake-0" / "leftover"
            launch = job(f"echo 40000 > {leftover}; (sleep 600 &); exit 0")
            await lab.engine.start(launch, 1)
            ended = tmp_path / "a" / "attempts" / "j1" / "1" / "exit.json"
            await eventually(ended.exists, "the end of the attempt")
            await a_while()
            assert not lab.all(Exited)
            leftover.unlink()
            await lab.next(Exited, launch.key)
            assert not lab.all(DevicesSeen) or lab.all(DevicesSeen)[-1].unfit == ()

    asyncio.run(run())


def test_a_device_that_stays_dirty_is_told_before_the_end_and_comes_back(tmp_path: Path, machine: Path) -> None:
    async def run() -> None:
        async with shared(tmp_path / "a", machine, looks=Looks(every_s=0.05, empty_s=0.1)) as lab:
            await lab.engine.adopt([], 1)
            leftover = machine / "fake-0" / "leftover"
            launch = job(f"echo 40000 > {leftover}")
            await lab.engine.start(launch, 1)
            await lab.next(Exited, launch.key)
            kinds = [type(report) for report in lab.reports]
            assert kinds.index(Exited) > len(kinds) - 1 - kinds[::-1].index(DevicesSeen)
            assert "its memory is held, though no process is shown" in dict(lab.all(DevicesSeen)[-1].unfit)[0]
            leftover.unlink()
            await told(lab)

    asyncio.run(run())


def test_a_silent_and_a_faulty_device_are_told(tmp_path: Path, machine: Path) -> None:
    async def run() -> None:
        async with shared(tmp_path / "a", machine) as lab:
            await lab.engine.adopt([], 1)
            (machine / "fake-0" / "silent").touch()
            (machine / "fake-1" / "xid").write_text("79")
            await told(lab, d0="it does not answer", d1="XID 79: the GPU has fallen off the bus; nothing is started")
            (machine / "fake-0" / "silent").unlink()
            await told(lab, d1="XID 79")

    asyncio.run(run())


def test_a_fault_while_an_attempt_runs_is_told_with_its_end(tmp_path: Path, machine: Path) -> None:
    async def run() -> None:
        async with shared(tmp_path / "a", machine) as lab:
            launch = job(f"echo 48 > {machine}/fake-0/xid; exit 1")
            await lab.engine.start(launch, 1)
            assert (await lab.next(Exited, launch.key)).device_fault == "XID 48: a double-bit memory error"

    asyncio.run(run())


class HangingProbe:
    """A driver whose calls do not return for a while."""

    def __init__(self) -> None:
        self.is_well = threading.Event()
        self.n_looks = 0

    def look(self) -> Mapping[int, Sight]:
        self.n_looks += 1
        self.is_well.wait(30)
        return {0: Sight(), 1: Sight()}


def test_a_driver_that_hangs_holds_up_nothing_but_its_devices(tmp_path: Path, machine: Path) -> None:
    async def run() -> None:
        probe = HangingProbe()
        async with shared(tmp_path / "a", machine, probe=probe, looks=Looks(every_s=0.05, patience_s=0.1)) as lab:
            await lab.engine.adopt([], 1)
            await told(lab, d0="it does not answer", d1="it does not answer")
            launch = job("echo never")
            await lab.engine.start(launch, 1)
            assert (await lab.next(NotLaunched, launch.key)).exit_reason is ExitReason.DEVICE_UNAVAILABLE
            assert probe.n_looks == 1, "no second call while one hangs"
            probe.is_well.set()
            await told(lab)

    asyncio.run(run())


FIRST_SERVER = """
import asyncio, os, pickle, sys
from pathlib import Path
from runtime.engines.local import LocalEngine

async def main():
    home = Path(sys.argv[1])
    engine = LocalEngine(home=home, attempts_dir=home / "attempts", devices="fake:2xH100", environ=dict(os.environ))
    await engine.open(lambda report: print(type(report).__name__, flush=True))
    await engine.adopt(pickle.loads(bytes.fromhex(sys.argv[2])), 1)
    print("ready", flush=True)
    await asyncio.sleep(3600)

asyncio.run(main())
"""


@contextmanager
def first_server(home: Path, machine: Path, *launches: LaunchOrder) -> Iterator[subprocess.Popen[str]]:
    """Another server, in a process of its own, which has both devices and has started these attempts."""
    root = Path(machine_locks.__file__).parents[2]
    environ = {**os.environ, PRETENDED_VARIABLE: str(machine), "PYTHONPATH": str(root)}
    command = [sys.executable, "-c", FIRST_SERVER, str(home), pickle.dumps(list(launches)).hex()]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environ)
    assert process.stdout is not None
    wanted = {"ready", *(["Started"] if launches else [])}
    while wanted:
        line = process.stdout.readline()
        assert line, "the first server ended"
        wanted.discard(line.strip())
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_a_second_server_gets_only_what_the_first_has_not_and_is_told_who(tmp_path: Path, machine: Path) -> None:
    async def run() -> None:
        async with shared(tmp_path / "b", machine) as second:
            with first_server(tmp_path / "a", machine) as first:
                await second.engine.adopt([], 1)
                held = f"(pid {first.pid}, user "
                await told(second, d0=held, d1=held)
                assert "held by another nightlab: " in dict(second.all(DevicesSeen)[-1].unfit)[0]
                launch = job("echo never")
                await second.engine.start(launch, 1)
                assert held in (await second.next(NotLaunched, launch.key)).evidence
            await told(second)
            again = job("echo now", attempt=2)
            await second.engine.start(again, 1)
            assert (await second.next(Exited, again.key)).log_tail == "now\n"

    asyncio.run(run())


def test_a_killed_server_keeps_the_devices_of_its_running_jobs(tmp_path: Path, machine: Path) -> None:
    async def run() -> None:
        launch = job(("sleep", "1000000"))
        with first_server(tmp_path / "a", machine, launch) as first:
            first.kill()
            first.wait()
        async with shared(tmp_path / "b", machine) as second:
            await second.engine.adopt([], 1)
            await told(second, d0="held by another nightlab: nl j1.1 (pid ")
        async with shared(tmp_path / "a", machine) as successor:
            await successor.engine.adopt([launch], 2)
            await successor.next(Started, launch.key)
            await told(successor)
            await successor.engine.stop(stop(launch, grace_s=0), 2)
            await successor.next(Exited, launch.key)

    asyncio.run(run())
