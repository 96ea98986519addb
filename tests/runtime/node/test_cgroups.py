"""Control groups of attempts, with real groups where this user may make them."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from runtime.node import cgroups

MARKER = f"test{os.getpid()}"


@pytest.fixture
def group() -> str:
    made = cgroups.make(MARKER)
    if made is None:
        pytest.skip("this user may make no control group here")
    return made


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, "not within 10 s"
        time.sleep(0.005)


def started_in(group: str, command: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(["/bin/sh", "-c", f"echo 0 > {group}/cgroup.procs; {command}"])


def test_all_that_was_started_in_a_group_is_killed_and_the_group_removed(group: str) -> None:
    process = started_in(group, "sleep 600 & sleep 600 & wait")
    until(lambda: len(cgroups.members(group)) == 3)
    assert cgroups.kill(group)
    assert process.wait(10) == -9
    until(lambda: not cgroups.kill(group))
    cgroups.remove(group)
    assert not os.path.exists(group)


def test_a_group_with_members_is_not_removed(group: str) -> None:
    process = started_in(group, "exec sleep 600")
    until(lambda: cgroups.members(group))
    cgroups.remove(group)
    assert process.pid in cgroups.members(group)
    process.kill()
    process.wait()
    cgroups.remove(group)


def test_groups_that_the_attempt_made_are_removed_too(group: str) -> None:
    os.mkdir(f"{group}/inner")
    cgroups.remove(group)
    assert not os.path.exists(group)


def test_only_the_group_of_the_attempt_itself_counts_as_its_own(group: str, tmp_path: Path) -> None:
    parent = os.path.dirname(group)
    assert cgroups.is_of(group, MARKER)
    for other in (
        parent,
        group + "/",
        f"{parent}/x/../nightlab-{MARKER}",
        str(tmp_path / f"nightlab-{MARKER}"),
        None,
        7,
    ):
        assert not cgroups.is_of(other, MARKER), other
    assert not cgroups.is_of(group, "another")
    cgroups.remove(group)


@pytest.mark.parametrize(
    ("events", "expected"),
    [("low 0\nmax 3\noom 1\noom_kill 2\n", 2), ("low 0\noom_kill 0\n", 0), ("low 0\n", None), (None, None)],
)
def test_the_group_tells_how_many_were_killed_for_memory(
    tmp_path: Path, events: str | None, expected: int | None
) -> None:
    if events is not None:
        (tmp_path / "memory.events").write_text(events)
    assert cgroups.oom_kills(str(tmp_path)) == expected
