"""What training does works in a sealed job as ever, by Landlock too; and what is the fence's own."""

from __future__ import annotations

import errno
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sealed_run
from other_user import IN_A_CONTAINER, NO_USER_NAMESPACES, ROOT, UID, run_as_other_user

from runtime_client import landlock

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another user"),
    pytest.mark.skipif(landlock.abi() < landlock.SIGNALS_SINCE, reason="needs Landlock of version 6"),
]
HERE = Path(__file__).parent


@pytest.fixture
def home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


def sealed(home: Path, script: str, before: str, **wishes: Any) -> dict[str, Any]:
    os.chown(home, *(0, 0) if before in (IN_A_CONTAINER, ROOT) else (UID, UID))
    words = (str(home), json.dumps(wishes), str(HERE / script))
    run = run_as_other_user(Path(sealed_run.__file__), *words, before=before)
    assert run.returncode == 0, run.stderr
    found: dict[str, Any] = json.loads(run.stdout)
    return found


@pytest.mark.parametrize(
    ("before", "wishes"),
    [
        (NO_USER_NAMESPACES, {}),
        pytest.param(NO_USER_NAMESPACES, {"abi": 3}, marks=pytest.mark.kills),
        pytest.param(NO_USER_NAMESPACES, {"launch": "warm"}, marks=pytest.mark.kills),
        pytest.param(IN_A_CONTAINER, {}, marks=pytest.mark.kills),
        pytest.param("", {}, marks=pytest.mark.kills),
        pytest.param(ROOT, {}, marks=pytest.mark.kills),
    ],
    ids=["landlock", "landlock 3", "landlock, warm", "root in a container", "user namespace", "root"],
)
def test_what_training_does_works(home: Path, before: str, wishes: dict[str, Any]) -> None:
    """With processes, locks, sockets of its own, the gateway, modes and times of its files, signals to its children."""
    found = sealed(home, "usual_work.py", before, **wishes)
    told = dict(json.loads(line) for line in found["log"].splitlines())
    assert {name: how for name, how in told.items() if how != "done"} == {}
    assert len(told) == 13
    assert found["code"] == 0
    assert found["left"] == []
    assert found["launch"] == wishes.get("launch", "cold")
    assert found["sandbox"]["how"] == {ROOT: "root", "": "user namespace"}.get(before, "landlock")


@pytest.mark.kills
def test_without_landlock_a_sealed_job_does_not_start_and_says_what_to_do(home: Path) -> None:
    found = sealed(home, "usual_work.py", NO_USER_NAMESPACES, way="nothing")
    assert found["reason"] == "sandbox_unavailable"
    assert "by landlock: left out" in found["evidence"]
    assert "sysctl" in found["evidence"]


@pytest.mark.kills
@pytest.mark.parametrize("network", ["none", "open"])
def test_its_sockets_reach_the_gateway_or_the_network_and_nothing_of_its_user(home: Path, network: str) -> None:
    found = sealed(home, "fenced_sockets.py", NO_USER_NAMESPACES, network=network)
    assert dict(json.loads(line) for line in found["log"].splitlines()) == {
        "device": "lo" if network == "none" else "",
        "let_go_of_its_device": os.strerror(errno.EPERM) if network == "none" else "free",
        "local": "made" if network == "none" else os.strerror(errno.EAFNOSUPPORT),
        "datagrams": os.strerror(errno.EAFNOSUPPORT) if network == "none" else "made",
        "pair": "x",
        "gateway": "answers",
    }


@pytest.mark.kills
def test_nothing_of_a_fenced_job_is_left(home: Path) -> None:
    """Without a pid namespace, whose end would be the end of all in it."""
    found = sealed(home, "leaves_one.py", NO_USER_NAMESPACES)
    (_, pid) = json.loads(found["log"])
    assert found["code"] == 0
    assert not Path(f"/proc/{pid}").exists()


@pytest.mark.kills
def test_a_folder_above_nightlabs_own_is_refused(home: Path) -> None:
    found = sealed(home, "fenced_sockets.py", "", readable=[str(home)])
    assert found["reason"] == "bad_command"
    assert "holds nightlab's own folder" in found["evidence"]


@pytest.mark.kills
def test_a_folder_that_its_user_can_list_but_not_enter_is_refused(home: Path) -> None:
    listed = home / "listed"
    listed.mkdir(mode=0o644)
    os.chown(listed, UID, UID)
    found = sealed(home, "fenced_sockets.py", "", readable=[str(listed)])
    assert found["reason"] == "bad_command"
    assert "chmod u+rX" in found["evidence"]
