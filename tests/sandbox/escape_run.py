"""Try the ways out from inside a real sealed job: `python escape_run.py HOME WISHES`, these as in `sealed_run`,
and `without`: the sets of layers to leave out, one after another.

Prints what came of each, as JSON. Outside, it makes what an escape would reach: files,
servers, a process, shared memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sealed_run

SCRIPT = Path(__file__).with_name("escape_attempts.py")
FILE_BOUND = 2**20
PROGRAM = "who"
"""Tells who it is, and has root's rights wherever it may have them. Made by whoever runs this."""
_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def world(home: Path, job_id: str) -> Iterator[dict[str, Any]]:
    """What there is outside of a job."""
    private, other = home / f"private-{job_id}", home / "attempts" / f"other-{job_id}"
    for folder in (private, other):
        folder.mkdir(parents=True, mode=0o700)
    (private / "secret.txt").write_text("private")
    (other / "loss.txt").write_text("0.5")
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(subprocess.Popen(["sleep", "60"]))
        stack.callback(server.kill)
        yield {
            "secret": str(private / "secret.txt"),
            "other_job": str(other / "loss.txt"),
            "attempt": str(home / "attempts" / job_id / "1"),
            "server": server.pid,
            "file_bound": FILE_BOUND,
            "disk": _disk(),
            "program": str(home / PROGRAM),
            **_sockets(stack, private),
            **_shared_memory(stack),
        }


def _disk() -> str:
    """One that whoever runs this may read, if there is any."""
    found = [f"/dev/{name}" for name in sorted(os.listdir("/sys/class/block"))] or ["/dev/sda"]
    for path in found:
        with contextlib.suppress(OSError):
            os.close(os.open(path, os.O_RDONLY))
            return path
    return found[0]


def _sockets(stack: contextlib.ExitStack, private: Path) -> dict[str, Any]:
    here = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        far = stack.enter_context(socket.socket(socket.AF_INET, kind))
        with contextlib.suppress(OSError):  # Who has no network of its own has no such address.
            far.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            far.bind(("192.0.2.1", 8080))
            far.listen() if kind == socket.SOCK_STREAM else None
    abstract = f"nightlab-{private.name}-{os.getpid()}"
    named = ("\0" + abstract, str(private / "socket"), str(private / "datagrams"))
    for address, kind in zip(named, (socket.SOCK_STREAM, socket.SOCK_STREAM, socket.SOCK_DGRAM), strict=True):
        made = stack.enter_context(socket.socket(socket.AF_UNIX, kind))
        made.bind(address)
        made.listen() if kind == socket.SOCK_STREAM else None
    return {"port": here.getsockname()[1], "abstract": abstract, "socket": named[1], "datagrams": named[2]}


def _shared_memory(stack: contextlib.ExitStack) -> dict[str, Any]:
    name = f"nightlab-{os.getpid()}"
    Path("/dev/shm", name).touch()
    stack.callback(Path("/dev/shm", name).unlink, missing_ok=True)
    found = _libc.shmget(os.getpid(), 4096, 0o1666)
    stack.callback(_libc.shmctl, found, 0, None)
    return {"memory": os.getpid(), "shared_file": name}


async def tried(home: Path, left_out: list[list[str]]) -> list[dict[str, Any]]:
    """What came of the attempts from one sealed job for each set of layers that is left out."""
    jobs = [
        sealed_run.Sealed(
            script=SCRIPT,
            job_id=f"j{number}",
            without=tuple(layers),
            limits={"disk_bytes": FILE_BOUND},
            readable=(str(home / PROGRAM),),
        )
        for number, layers in enumerate(left_out, 1)
    ]
    with contextlib.ExitStack() as stack:
        for one in jobs:
            # In a file: what a command names by its whole path is given to it, if it is a program.
            told = sealed_run.code_folder(home, one.job_id) / "outside.json"
            told.write_text(json.dumps(stack.enter_context(world(home, one.job_id))))
        return await sealed_run.run(home, jobs)


def main() -> None:
    home, wishes = Path(sys.argv[1]), json.loads(sys.argv[2])
    sealed_run.pretend(wishes)
    print(json.dumps(asyncio.run(tried(home, wishes.get("without", [[]])))))


if __name__ == "__main__":
    main()
