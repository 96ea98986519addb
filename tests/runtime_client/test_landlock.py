"""Landlock holds a process to what it was left: each rule in a process of its own, which it is there for good."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from runtime_client import landlock

needs_landlock = pytest.mark.skipif(landlock.abi() < 3, reason="needs Landlock of version 3")
BEGIN = """
import os, socket, sys
from runtime_client import landlock
def told(name, act):
    try:
        act()
        print(name, "done")
    except OSError as error:
        print(name, type(error).__name__)
own, other = sys.argv[1:3]
"""


def told(tmp_path: Path, code: str, *words: str) -> dict[str, str]:
    for name in ("own", "other"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "file").write_text("#!/bin/sh\n")
        (folder / "file").chmod(0o755)
    command = [sys.executable, "-c", BEGIN + code, str(tmp_path / "own"), str(tmp_path / "other"), *words]
    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return dict(line.split() for line in run.stdout.splitlines())


@needs_landlock
def test_what_was_not_given_can_neither_be_read_nor_written(tmp_path: Path) -> None:
    code = """
landlock.restrict(read=[own], write=[own + "/absent"])
told("read", lambda: open(own + "/file"))
told("list", lambda: os.listdir(own))
told("write", lambda: open(own + "/file", "w"))
told("cut", lambda: os.truncate(own + "/file", 0))
told("execute", lambda: os.execv(own + "/file", ["file"]))
told("read-other", lambda: open(other + "/file"))
told("list-other", lambda: os.listdir(other))
told("move-other", lambda: os.rename(other + "/file", other + "/moved"))
"""
    assert told(tmp_path, code) == {
        "read": "done",
        "list": "done",
        **dict.fromkeys(
            ("write", "cut", "execute", "read-other", "list-other", "move-other"),
            "PermissionError",
        ),
    }


@needs_landlock
def test_a_folder_to_write_is_written_as_ever_and_a_single_file_alone(tmp_path: Path) -> None:
    code = """
landlock.restrict(write=[own, other + "/file"], devices=["/dev/null"])
told("new", lambda: open(own + "/new", "w"))
told("folder", lambda: os.mkdir(own + "/folder"))
told("move", lambda: os.rename(own + "/new", own + "/folder/new"))
told("remove", lambda: os.remove(own + "/folder/new"))
told("file", lambda: open(other + "/file", "w"))
told("device", lambda: open("/dev/null", "w").write("x"))
told("beside", lambda: open(other + "/new", "w"))
"""
    found = told(tmp_path, code)
    assert found.pop("beside") == "PermissionError"
    assert set(found.values()) == {"done"}
    assert len(found) == 6


@needs_landlock
def test_signals_and_abstract_sockets_of_others_are_out_of_reach(tmp_path: Path) -> None:
    if landlock.abi() < landlock.SIGNALS_SINCE:
        pytest.skip("needs Landlock of version 6")
    code = """
listener = socket.socket(socket.AF_UNIX)
listener.bind("\\0nightlab-test-" + str(os.getpid()))
listener.listen()
parent = os.getpid()
if (child := os.fork()) == 0:
    landlock.restrict(no_signals=True)
    told("parent", lambda: os.kill(parent, 0))
    told("itself", lambda: os.kill(os.getpid(), 0))
    told("abstract", lambda: socket.socket(socket.AF_UNIX).connect(listener.getsockname()))
    sys.stdout.flush()
    os._exit(0)
os.waitpid(child, 0)
"""
    assert told(tmp_path, code) == {"parent": "PermissionError", "itself": "done", "abstract": "PermissionError"}


@needs_landlock
def test_tcp_is_taken_where_it_is_asked_for(tmp_path: Path) -> None:
    if landlock.abi() < landlock.NETWORK_SINCE:
        pytest.skip("needs Landlock of version 4")
    code = """
with socket.create_server(("127.0.0.1", 0)) as server:
    landlock.restrict(no_tcp=True)
    told("connect", lambda: socket.create_connection(server.getsockname(), 1))
    told("bind", lambda: socket.create_server(("127.0.0.1", 0)))
"""
    assert told(tmp_path, code) == {"connect": "PermissionError", "bind": "PermissionError"}


def test_what_the_kernel_does_not_know_is_refused_before_anything_is_restricted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(landlock, "abi", lambda: 3)
    with pytest.raises(OSError, match="can not hold back signals: it has version 3, not 6"):
        landlock.restrict(no_signals=True)
    with pytest.raises(OSError, match="can not hold back TCP: it has version 3, not 4"):
        landlock.restrict(no_tcp=True)
