"""Folders nested deeper than a program can call itself, or a path can say: counted, shown and removed, or refused."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "runtime" / "engines"))
from local_engine_lab import job, local_lab

from runtime.engines.box_plan import show
from runtime.engines.contract import Exited
from runtime.sandbox import disk, folders
from runtime.server import retention
from runtime_client.models import Sandbox

DEEP, TOO_DEEP = (1020, "a"), (20, "a" * 250)
"""How many folders in each other, and their name: more than a program calls itself, more than a path has bytes."""
NEST = """
import os, time
for _ in range({nesting[0]}):
    os.mkdir("{nesting[1]}")
    os.chdir("{nesting[1]}")
open("f", "w").write("x" * 5000)
"""


@pytest.fixture
def top(tmp_path: Path) -> Iterator[Path]:
    made = tmp_path / "work"
    made.mkdir()
    yield made
    subprocess.run(["rm", "-rf", str(tmp_path)], check=True)


def nest(top: Path, nesting: tuple[int, str]) -> None:
    subprocess.run([sys.executable, "-c", NEST.format(nesting=nesting)], cwd=top, check=True)


def assert_deleted(top: Path) -> None:
    assert retention._delete(top) is None
    assert list(top.parent.iterdir()) == []


@pytest.mark.kills
def test_deep_folders_are_counted_shown_and_deleted(top: Path) -> None:
    nest(top, DEEP)
    assert 5000 <= disk.used(str(top)) < 20_000
    assert retention.size_of(top) == 5000
    deepest = str(top) + "/a" * DEEP[0]
    os.chmod(f"{deepest}/f", 0o600)
    show(top)
    assert os.stat(f"{deepest}/f").st_mode & 0o777 == 0o644
    assert_deleted(top)


def test_folders_deeper_than_a_path_are_more_than_any_bound_and_are_deleted(top: Path) -> None:
    nest(top, TOO_DEEP)
    assert disk.used(str(top)) == disk.TOO_DEEP
    with pytest.raises(folders.TooDeep):
        list(folders.walk(str(top)))
    show(top)
    assert_deleted(top)


def test_no_link_is_followed(top: Path) -> None:
    (top / "up").symlink_to(top)
    (top / "file").touch()
    assert [(place, sorted(names)) for place, names in folders.walk(str(top))] == [(str(top), ["file", "up"])]


@pytest.mark.skipif(os.geteuid() != 0, reason="sealed jobs need root")
def test_a_sealed_job_that_nests_folders_is_ended_and_its_supervisor_is_not(tmp_path: Path) -> None:
    """Its disk would not be bounded any more: what lies deeper than a path says is seen by nobody."""

    async def run() -> Exited:
        async with local_lab(tmp_path) as lab:
            code = NEST.format(nesting=TOO_DEEP) + "time.sleep(30)"
            launch = job((sys.executable, "-c", code), sandbox=Sandbox.SEALED)
            await lab.engine.start(launch, 1)
            return await lab.next(Exited, launch.key)

    ended = asyncio.run(run())
    subprocess.run(["rm", "-rf", str(tmp_path / "attempts")], check=True)
    assert (ended.was_killed, ended.supervisor_lost) == (True, False)
    assert "nested too deep" in ended.log_tail
