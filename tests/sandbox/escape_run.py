"""Try the ways out from inside real sealed jobs: `python escape_run.py HOME WISHES`. Prints what came of it, as JSON.

`WISHES` as in `sealed_run`, and `boxes`: what each is without, and what is tried in it (null: all), one after another.
Outside, it makes what an escape would reach: files, servers, a process, shared memory.
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
FILE_BOUND, MEMORY_BOUND, PROCESS_BOUND = 2**20, 2**27, 32
LIMITS = {"disk_bytes": FILE_BOUND, "memory_bytes": MEMORY_BOUND, "processes": PROCESS_BOUND}
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
            "memory_bound": MEMORY_BOUND,
            "process_bound": PROCESS_BOUND,
            "names": os.readlink("/proc/self/ns/uts"),
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


async def tried(home: Path, boxes: list[tuple[list[str], list[str] | None]]) -> list[dict[str, Any]]:
    """What came of it from one sealed job for each: the layers that it is without, and the attempts (None: all)."""
    jobs = [
        sealed_run.Sealed(
            script=SCRIPT,
            job_id=f"j{number}",
            without=tuple(without),
            limits=LIMITS,
            readable=(str(home / PROGRAM),),
        )
        for number, (without, _) in enumerate(boxes, 1)
    ]
    with contextlib.ExitStack() as stack:
        for one, (_, attempts) in zip(jobs, boxes, strict=True):
            outside = {**stack.enter_context(world(home, one.job_id)), "attempts": attempts}
            # In a file: what a command names by its whole path is given to it, if it is a program.
            (sealed_run.code_folder(home, one.job_id) / "outside.json").write_text(json.dumps(outside))
        return await sealed_run.run(home, jobs)


def main() -> None:
    home, wishes = Path(sys.argv[1]), json.loads(sys.argv[2])
    sealed_run.pretend(wishes)
    print(json.dumps(asyncio.run(tried(home, wishes.get("boxes", [([], None)])))))


if __name__ == "__main__":
    main()
