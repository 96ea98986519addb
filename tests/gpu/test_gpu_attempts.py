"""With an NVIDIA GPU: memory is free after a kill, the job sees the right device, a foreign process is left alone.

`pytest -m gpu tests/gpu`; skipped with a reason where there is no driver. The jobs use libcuda alone, so no framework
is needed.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from runtime.engines.conformance import Lab, opened, order, stop
from runtime.engines.contract import DevicesSeen, Exited, LaunchOrder, NotLaunched
from runtime.engines.device_watch import Looks
from runtime.engines.local import LocalEngine
from runtime.model.nouns import Device
from runtime.node.device_probe import NvmlProbe
from runtime.node.devices import find_devices
from runtime_client.models import JobSpec

pytestmark = pytest.mark.gpu

HELD_MB = 2048
HOLDS_MEMORY = f"""
import ctypes, os, time
cuda = ctypes.CDLL("libcuda.so.1")
def do(code):
    assert code == 0, code
do(cuda.cuInit(0))
n = ctypes.c_int(); do(cuda.cuDeviceGetCount(ctypes.byref(n)))
device = ctypes.c_int(); do(cuda.cuDeviceGet(ctypes.byref(device), 0))
uuid = (ctypes.c_ubyte * 16)(); do(cuda.cuDeviceGetUuid(uuid, device))
text = bytes(uuid).hex()
text = "GPU-" + "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
context = ctypes.c_void_p(); do(cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device))
memory = ctypes.c_uint64(); do(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t({HELD_MB} << 20)))
print("sees", n.value, text, os.environ.get("NIGHTLAB_DEVICE_UUIDS"), flush=True)
time.sleep(600)
"""
QUICK = Looks(every_s=0.2)


@pytest.fixture(scope="module")
def device() -> Device:
    found = [device for device in find_devices("auto", {}) if device.kind != "cpu"]
    if not found:
        pytest.skip("there is no NVIDIA driver here, or it shows no device")
    return found[0]


@pytest.fixture
def foreigner(device: Device) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is not ours and holds memory of the device."""
    environ = {**os.environ, "CUDA_VISIBLE_DEVICES": device.uuid}
    process = subprocess.Popen([sys.executable, "-c", HOLDS_MEMORY], stdout=subprocess.PIPE, env=environ)
    assert process.stdout is not None
    assert b"sees" in process.stdout.readline()
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def engine(home: Path) -> LocalEngine:
    return LocalEngine(
        home=home, attempts_dir=home / "attempts", devices="auto", environ=dict(os.environ), looks=QUICK, sweep_s=0.1
    )


def on(device: Device, command: tuple[str, ...]) -> LaunchOrder:
    launch = order("gpu", spec=JobSpec(experiment_name="gpu", command=command))
    placements = (replace(launch.placements[0], devices=(device.index,)),)
    return replace(launch, placements=placements, device_kinds=(device.kind,))


async def told(lab: Lab, index: int, is_unfit: bool) -> None:
    def last() -> bool:
        seen = lab.all(DevicesSeen)
        return bool(seen) and (index in dict(seen[-1].unfit)) is is_unfit

    await lab.until(last, f"device {index} told as {'unfit' if is_unfit else 'fit'}")


def test_memory_is_free_when_the_end_of_a_killed_attempt_is_told(tmp_path: Path, device: Device) -> None:
    async def run() -> None:
        probe = NvmlProbe([device])
        async with opened(engine(tmp_path)) as lab:
            await lab.engine.adopt([], 1)
            await told(lab, device.index, is_unfit=False)
            launch = on(device, (sys.executable, "-c", HOLDS_MEMORY))
            await lab.engine.start(launch, 1)
            await lab.until_log(launch.key, b"sees")
            assert probe.look()[device.index].used_mb >= HELD_MB
            await lab.engine.stop(stop(launch, grace_s=0), 1)
            await lab.next(Exited, launch.key)
            assert probe.look()[device.index].used_mb < HELD_MB

    asyncio.run(run())


def test_a_job_sees_its_device_and_no_other(tmp_path: Path, device: Device) -> None:
    async def run() -> None:
        async with opened(engine(tmp_path)) as lab:
            launch = on(device, (sys.executable, "-c", HOLDS_MEMORY))
            await lab.engine.start(launch, 1)
            await lab.until_log(launch.key, b"sees")
            assert (await lab.log(launch.key)).decode().split() == ["sees", "1", device.uuid, device.uuid]
            await lab.engine.stop(stop(launch, grace_s=0), 1)
            await lab.next(Exited, launch.key)

    asyncio.run(run())


def test_a_foreign_process_is_seen_and_left_alone(
    tmp_path: Path, device: Device, foreigner: subprocess.Popen[bytes]
) -> None:
    async def run() -> None:
        async with opened(engine(tmp_path)) as lab:
            await lab.engine.adopt([], 1)
            await told(lab, device.index, is_unfit=True)
            launch = on(device, ("true",))
            await lab.engine.start(launch, 1)
            await lab.next(NotLaunched, launch.key)
            assert foreigner.poll() is None
            foreigner.kill()
            foreigner.wait()
            await told(lab, device.index, is_unfit=False)

    asyncio.run(run())
