"""A candidate of a scorer in a box gets nowhere, whichever way the box was made; real processes."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import candidate_run
import pytest
from other_user import NO_USER_NAMESPACES, UID, run_as_other_user

from runtime_client import landlock

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another user"),
    pytest.mark.skipif(landlock.abi() < 3, reason="needs Landlock of Linux 6.2"),
]
REFUSED = {f"errno {number}" for number in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ELOOP)}


def check(told: dict[str, Any]) -> None:
    assert told["double"] == 42
    assert told["layers"] == ["landlock", "seccomp", "rlimit"]
    assert len(told["told"]) == 23
    assert {name: how for name, how in told["told"].items() if how not in REFUSED} == {}


def test_in_a_box_of_root(tmp_path: Path) -> None:
    ended = asyncio.run(candidate_run.asked(tmp_path))
    assert ended.exit_code == 0, ended.log_tail
    check(json.loads(ended.log_tail))


@pytest.mark.kills
@pytest.mark.parametrize("before", ["", NO_USER_NAMESPACES])
def test_in_a_box_of_an_ordinary_user(before: str) -> None:
    with tempfile.TemporaryDirectory() as home:
        os.chown(home, UID, UID)
        run = run_as_other_user(Path(candidate_run.__file__), home, before=before)
    assert run.returncode == 0, run.stderr
    check(json.loads(run.stdout))
