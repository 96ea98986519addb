"""Thirty ways out of a sealed job, tried from inside a real one: each is stopped, by the layer meant for it."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import shutil
import socket
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "runtime" / "engines"))
from local_engine_lab import job, local_lab

from runtime.engines.contract import Exited, Started
from runtime_client.models import Sandbox

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="sealed jobs need root")
SCRIPT = Path(__file__).with_name("escape_attempts.py")
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


async def _tried(home: Path) -> tuple[Started, Exited]:
    secret = home / "secret.txt"
    secret.write_text("private")
    other = home / "attempts" / "j9" / "work" / "loss.txt"
    other.parent.mkdir(parents=True)
    other.write_text("0.5")
    script = home / "attempts" / "code" / "attempts.py"
    script.parent.mkdir()
    shutil.copy(SCRIPT, script)
    with socket.create_server(("127.0.0.1", 0)) as server:
        words = [str(secret), str(other), str(os.getpid()), str(server.getsockname()[1]), str(home / "attempts/j1/1")]
        async with local_lab(home) as lab:
            launch = job((sys.executable, str(script), *words), sandbox=Sandbox.SEALED, readable=(str(script.parent),))
            await lab.engine.start(launch, 1)
            return await lab.next(Started, launch.key), await lab.next(Exited, launch.key)


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> tuple[Started, Exited]:
    return asyncio.run(_tried(tmp_path_factory.mktemp("escapes")))


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
