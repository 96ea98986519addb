"""Logs that do not grow without bound, also while somebody writes them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from agent import log_files
from agent.log_files import cut, forget_oldest, rotate
from agent.service import _bound_logs, _Care, log_path


@pytest.fixture(autouse=True)
def small_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_files, "LOG_LIMIT_BYTES", 100)


@pytest.mark.parametrize("bound", [rotate, cut])
def test_a_log_beyond_its_limit_begins_anew_and_has_one_predecessor(tmp_path: Path, bound) -> None:
    log = tmp_path / "night-n1.log"
    bound(log)
    for word in ("first", "second"):
        log.write_text(word * 30)
        bound(log)
        assert not log.exists() or log.stat().st_size == 0
        assert (tmp_path / "night-n1.log.1").read_text() == word * 30
    log.write_text("small")
    bound(log)
    assert log.read_text() == "small"


def test_who_appends_to_a_log_that_is_cut_goes_on_at_its_beginning(tmp_path: Path) -> None:
    log = tmp_path / "session-s1.log"
    with log.open("ab", buffering=0) as writer:
        writer.write(b"x" * 200)
        cut(log)
        writer.write(b"after")
    assert log.read_bytes() == b"after"


def test_the_oldest_logs_are_forgotten_but_for_those_of_living_processes(tmp_path: Path) -> None:
    for age in range(5):
        for name in (f"night-n{age}.log", f"night-n{age}.log.1", f"session-s{age}.log"):
            (tmp_path / name).write_text("x")
            os.utime(tmp_path / name, (1e9 - age, 1e9 - age))
    forget_oldest(tmp_path, "night-*.log", keep=2, but=[tmp_path / "night-n4.log"])
    assert sorted(path.name for path in tmp_path.glob("night-*")) == [
        f"night-n{age}.log{end}" for age in (0, 1, 4) for end in ("", ".1")
    ]
    assert len(list(tmp_path.glob("session-*"))) == 5


def test_the_service_bounds_the_logs_of_its_children_while_they_write(tmp_path: Path) -> None:
    def spawn(home: Path, _name: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(["true"], cwd=home)

    care = _Care(spawn=spawn, spawn_night=spawn, backoff_s=(1.0,), children={"s1": spawn(tmp_path, "s1")})
    log = log_path(tmp_path, "s1")
    log.parent.mkdir()
    log.write_text("x" * 200)
    _bound_logs(care, tmp_path)
    assert log.read_text() == ""
    log.write_text("y" * 200)
    _bound_logs(care, tmp_path)
    assert log.read_text() == "y" * 200, "not looked at more than once a minute"
    care.children["s1"].wait()
