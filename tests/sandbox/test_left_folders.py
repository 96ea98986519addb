"""A sealed job reads what the job that it waited for left, and is led nowhere by it; real processes."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import tempfile
from pathlib import Path

import left_run
import pytest
from other_user import UID, run_as_other_user

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another user")
READ = {
    "file": "weights",
    "deeper": "more",
    "state": "state",
    "link": errno.ELOOP,
    "other": errno.ENOENT,
    "records": ["checkpoints", "work"],
    "change": errno.EROFS,
    "pipe": True,
    "private": "the answers",
}


def test_what_was_left_can_be_read_and_neither_followed_nor_changed(tmp_path: Path) -> None:
    private = tmp_path / "test.npy"
    private.write_text("the answers")
    trained, scored = asyncio.run(left_run.measured(tmp_path / "home", private))
    assert trained.exit_code == 0, trained.log_tail
    assert scored.exit_code == 0, scored.log_tail
    assert json.loads(scored.log_tail) == READ


@pytest.mark.kills
def test_the_same_holds_for_the_jobs_of_an_ordinary_user() -> None:
    with tempfile.TemporaryDirectory() as home:
        os.chown(home, UID, UID)
        run = run_as_other_user(Path(left_run.__file__), home)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout) == READ
