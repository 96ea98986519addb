"""Ways out of a sealed job, tried from inside a real one, for each way of sealing: each is stopped, by its layer."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import escape_run
import pytest
from escape_layers import BY_WAY, HIDDEN_INIT, MACHINE, ROOT
from other_user import IN_A_CONTAINER, NO_USER_NAMESPACES, UID, run_as_other_user
from other_user import ROOT as AS_ROOT

from runtime_client import landlock

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another user")
needs_landlock = pytest.mark.skipif(landlock.abi() < landlock.SIGNALS_SINCE, reason="needs Landlock of version 6")
N_ATTEMPTS = 55


@pytest.fixture
def home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


def tried(home: Path, before: str, **wishes: Any) -> list[dict[str, Any]]:
    os.chown(home, *(0, 0) if before in (AS_ROOT, IN_A_CONTAINER) else (UID, UID))
    shutil.copy("/usr/bin/id", home / escape_run.PROGRAM)
    (home / escape_run.PROGRAM).chmod(0o4755)
    run = run_as_other_user(Path(escape_run.__file__), str(home), json.dumps(wishes), before=before)
    assert run.returncode == 0, run.stderr
    found: list[dict[str, Any]] = json.loads(run.stdout)
    return found


def told_by(found: dict[str, Any]) -> dict[str, str]:
    """How each attempt went: the last word on each, since one that ends the job says that it is made, and no more."""
    assert "log" in found, found
    return dict(json.loads(line) for line in found["log"].splitlines() if line.startswith("["))


@pytest.mark.parametrize(
    ("before", "how", "wishes"),
    [
        (AS_ROOT, "root", {}),
        ("", "user namespace", {}),
        pytest.param(NO_USER_NAMESPACES, "landlock", {}, marks=needs_landlock),
        pytest.param(NO_USER_NAMESPACES, "landlock", {"abi": 3}, marks=[needs_landlock, pytest.mark.kills]),
        pytest.param(IN_A_CONTAINER, "landlock", {}, marks=[needs_landlock, pytest.mark.kills]),
    ],
    ids=["root", "user namespace", "landlock", "landlock 3", "root in a container"],
)
def test_no_attempt_escapes(home: Path, before: str, how: str, wishes: dict[str, Any]) -> None:
    (found,) = tried(home, before, **wishes)
    told = told_by(found)
    assert [name for name, came in told.items() if came == "escaped"] == []
    assert len(told) == len(BY_WAY[how]) == N_ATTEMPTS
    assert found["sandbox"]["how"] == how
    named = {layer for layers in BY_WAY[how].values() for layer in layers} - {HIDDEN_INIT, "cgroup"}
    assert named <= set(found["sandbox"]["layers"])


@pytest.mark.kills
@needs_landlock
@pytest.mark.parametrize(
    ("before", "way"), [(AS_ROOT, "root"), ("", "user namespace"), ("", "landlock")], ids=list(BY_WAY)
)
def test_each_attempt_succeeds_where_its_layers_are_left_out(home: Path, before: str, way: str) -> None:
    """So it is these that stop it. What the machine itself refuses an ordinary user shows nothing of a box."""
    by_layers: dict[tuple[str, ...], list[str]] = {}
    for name, layers in BY_WAY[way].items():
        by_layers.setdefault(layers, []).append(name)
    by_layers.pop(MACHINE, None)
    found = tried(home, before, way=way, boxes=list(by_layers.items()))
    came = {name: how for one in found for name, how in told_by(one).items()}
    assert {name for names in by_layers.values() for name in names} == came.keys()
    assert {name: how for name, how in came.items() if how != "escaped"} == {}


def test_each_layer_that_can_be_left_out_stops_something() -> None:
    named = {layer for way in BY_WAY.values() for layers in way.values() for layer in layers}
    assert named >= {"mount", "pid", "ipc", "net", "uid", "capabilities", "no_new_privs", "seccomp", "landlock"}
    assert named >= {"uts", "rlimit", "cgroup"}
    assert all(way.keys() == ROOT.keys() for way in BY_WAY.values())
