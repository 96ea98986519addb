"""Thirty ways out of a sealed job, tried from inside a real one: each is stopped, by the layer meant for it."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "runtime" / "engines"))
import escape_run
from other_user import NO_USER_NAMESPACES, UID, run_as_other_user

from runtime.engines.contract import Exited, Started

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another user")
REFUSED, READ_ONLY, ABSENT = errno.EPERM, errno.EROFS, errno.ENOENT
BY_LAYER = {
    "mount": {
        "read /etc/shadow": (ABSENT,),
        "read a private file": (ABSENT,),
        "read another job's file": (ABSENT,),
        "read a private file through a link": (ABSENT,),
        "forge its own end": (READ_ONLY, errno.EACCES),
        "write to the system": (READ_ONLY, errno.EACCES),
        "write to the root": (READ_ONLY, errno.EACCES),
        "write to its Python": (READ_ONLY, errno.EACCES),
        "open a disk": (ABSENT,),
        "read the machine's memory": (ABSENT,),
    },
    "uid": {
        "read it through the init's root": (errno.EACCES,),
        "read its own order": (errno.EACCES,),
        "set what the kernel does": (errno.EACCES,),
        "write the init's memory": (errno.EACCES,),
        "see the init's files": (errno.EACCES,),
        "signal the init": (REFUSED,),
        "become root": (REFUSED,),
    },
    "pid": {"signal the server": (errno.ESRCH,)},
    "net": {
        "reach a server on the machine": (errno.ECONNREFUSED,),
        "reach the internet": (errno.ENETUNREACH,),
    },
    "seccomp": {
        "make a device node": (REFUSED,),
        "open a raw packet socket": (errno.EAFNOSUPPORT,),
        "open a vsock": (errno.EAFNOSUPPORT,),
        "trace the init": (REFUSED,),
        "mount": (REFUSED,),
        "change the root": (REFUSED,),
        "make a user namespace": (REFUSED,),
        "enter the init's namespace": (REFUSED,),
        "load a program into the kernel": (REFUSED,),
        "use io_uring": (errno.ENOSYS,),
    },
}


OF_THE_SAME_USER = {
    "signal the init": ("pid", "OSError"),
    "become root": ("capabilities", f"errno {errno.EINVAL}"),
    "read it through the init's root": ("capabilities", f"errno {errno.EACCES}"),
    "write the init's memory": ("capabilities", f"errno {errno.EACCES}"),
    "see the init's files": ("capabilities", f"errno {errno.EACCES}"),
    "read its own order": ("mount", f"errno {errno.EACCES}"),
    "set what the kernel does": ("capabilities", f"errno {errno.EACCES}"),
}
"""What holds in a user namespace where root's box has a user of its own."""


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> tuple[Started, Exited]:
    started, ended = asyncio.run(escape_run.tried(tmp_path_factory.mktemp("escapes")))
    assert isinstance(started, Started)
    assert ended is not None
    return started, ended


@pytest.fixture
def home_of_another() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        os.chown(folder, UID, UID)
        yield Path(folder)


def test_an_ordinary_users_sealed_job_does_not_escape(home_of_another: Path) -> None:
    run = run_as_other_user(Path(escape_run.__file__), str(home_of_another))
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    told = dict(json.loads(line) for line in found["log"].splitlines())
    expected = {
        name: (layer, {f"errno {number}" for number in numbers})
        for layer, names in BY_LAYER.items()
        for name, numbers in names.items()
    } | {name: (layer, {how}) for name, (layer, how) in OF_THE_SAME_USER.items()}
    assert {name: told.get(name) for name, (_, allowed) in expected.items() if told.get(name) not in allowed} == {}
    assert (found["sandbox"]["how"], found["sandbox"]["uid"]) == ("user namespace", UID)
    assert {layer for layer, _ in expected.values()} <= set(found["sandbox"]["layers"])
    assert "uid" not in found["sandbox"]["layers"]


def test_where_user_namespaces_are_refused_a_sealed_job_does_not_start(home_of_another: Path) -> None:
    run = run_as_other_user(Path(escape_run.__file__), str(home_of_another), before=NO_USER_NAMESPACES)
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    assert found["reason"] == "sandbox_unavailable"
    assert "a user namespace of its own: No space left on device" in found["evidence"]
    assert "sysctl" in found["evidence"]


def test_no_attempt_escapes(tried: tuple[Started, Exited]) -> None:
    started, ended = tried
    told = dict(json.loads(line) for line in ended.log_tail.splitlines())
    assert len(told) == sum(map(len, BY_LAYER.values())) == 30
    assert [name for name, how in told.items() if how == "escaped"] == []
    assert started.sandbox is not None
    assert set(BY_LAYER) <= set(started.sandbox.layers)


@pytest.mark.parametrize("layer", BY_LAYER)
def test_each_attempt_meets_the_wall_that_is_meant_for_it(tried: tuple[Started, Exited], layer: str) -> None:
    told = dict(json.loads(line) for line in tried[1].log_tail.splitlines())
    expected = {name: {f"errno {number}" for number in numbers} for name, numbers in BY_LAYER[layer].items()}
    assert {name: told[name] for name, allowed in expected.items() if told[name] not in allowed} == {}
