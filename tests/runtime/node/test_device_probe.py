"""What devices show, as a probe sees it, and what that means."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from runtime.engines.device_watch import unfit_reason
from runtime.model.nouns import Device
from runtime.node.device_probe import PRETENDED_VARIABLE, NoProbe, NvmlProbe, PretendedProbe, Sight, probe_for
from runtime.node.devices import find_devices

FAKES = find_devices("fake:2xH100", {})
REAL = (Device(index=0, kind="H100", uuid="GPU-1"),)


def test_cpu_slots_and_fakes_that_nobody_plays_are_not_looked_at() -> None:
    for devices in (find_devices("cpu:2", {}), FAKES):
        probe = probe_for(devices, {})
        assert isinstance(probe, NoProbe)
        assert probe.look() == {}


def test_pretended_devices_show_what_their_folders_say(tmp_path: Path) -> None:
    probe = probe_for(FAKES, {PRETENDED_VARIABLE: str(tmp_path)})
    assert probe.look() == {0: Sight(), 1: Sight()}
    (tmp_path / "fake-0").mkdir()
    (tmp_path / "fake-0" / str(os.getpid())).write_text("700")
    (tmp_path / "fake-0" / "leftover").write_text("30")
    assert probe.look()[0] == Sight(pids=(os.getpid(),), used_mb=730)


def test_a_process_that_is_gone_is_on_no_device(tmp_path: Path) -> None:
    (tmp_path / "fake-1").mkdir()
    process = subprocess.Popen(["true"])
    process.wait()
    (tmp_path / "fake-1" / str(process.pid)).write_text("700")
    assert PretendedProbe(tmp_path, FAKES).look()[1] == Sight()


def test_a_driver_that_is_not_there_does_not_answer() -> None:
    if os.path.exists("/dev/nvidiactl"):
        pytest.skip("there is a driver")
    assert isinstance(probe_for(REAL, {}), NvmlProbe)
    assert NvmlProbe(REAL).look() == {0: Sight(answers=False)}


@pytest.mark.parametrize(
    ("sight", "is_held", "reason"),
    [
        (Sight(), False, None),
        (Sight(used_mb=400), False, None),
        (Sight(used_mb=4000), False, "its memory is held, though no process is shown there"),
        (Sight(used_mb=4000), True, None),
        (Sight(pids=(2**22 + 1,)), False, "in use by a process that is not shown here (pid 4194305)"),
        (Sight(pids=(2**22 + 1,)), True, None),
        (Sight(answers=False), True, "it does not answer"),
    ],
)
def test_what_a_device_shows_decides_whether_it_is_fit(sight: Sight, is_held: bool, reason: str | None) -> None:
    assert unfit_reason(sight, (), is_held=is_held) == reason


def test_a_foreign_process_counts_beside_ours_too() -> None:
    sight = Sight(pids=(os.getpid(), os.getppid()))
    assert unfit_reason(sight, {os.getpid(), os.getppid()}, is_held=True) is None
    reason = unfit_reason(sight, {os.getppid()}, is_held=True)
    assert reason is not None
    assert f"(pid {os.getpid()}, user " in reason
