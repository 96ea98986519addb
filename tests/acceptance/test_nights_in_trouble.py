"""Nights on a disk that fills, and with the processes that look after them stopped as by a debugger."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from command import nightlab
from fault_lab import eventually
from night_lab import NightLab, Plan, check_each_once

from agent.sweeps.views import NightOutcome

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(600)]

DISK_MIB = 320
"""More than the runtime wants free before it starts anything."""
CHUNK = bytes(1024 * 1024)


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """Unmounted at the end even where a file of it is still open: the space comes back when that is closed."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m,mode=0700", "nightlab-test", str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"a small disk of one's own can not be mounted here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(file: Path) -> None:
    """To the last byte."""
    with file.open("ab", buffering=0) as full:
        for chunk in (CHUNK, CHUNK[:4096], CHUNK[:1]):
            try:
                while True:
                    full.write(chunk)
            except OSError:
                continue


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")
def test_a_night_on_a_full_disk_says_so_and_goes_on_when_there_is_space(tmp_path: Path) -> None:
    plan = Plan(n_points=4, n_seeds=2, n_steps=9, pause_s=0.2)
    with small_disk(tmp_path / "disk") as disk, NightLab(tmp_path, plan, home=disk / "home") as lab:
        lab.write_sweep()
        lab.up_once(stay=True)
        start = lab.sweep_run("--json")
        lab.await_measured(2)
        filler = disk / "filler"
        fill(filler)
        eventually(lambda: "! low disk: 0 MiB free" in nightlab("status", home=lab.home).out, what="word of it")
        n_before = lab.n_measured()
        again = lab.said(lab.sweep_run(), within_s=60)
        assert (again.exit_code, again.out) == (1, "")
        assert "no space is left on the disk" in again.err
        fill(filler)
        assert (lab.night().outcome, lab.n_measured()) == (None, n_before)
        assert n_before < plan.n_trials

        filler.unlink()
        said = lab.said(start, within_s=180)
        assert said.exit_code == 0, said.err
        assert lab.night().outcome is NightOutcome.DONE
        check_each_once(lab)
