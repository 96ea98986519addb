"""Whether this user can seal here: what a box needs is made for real, in a process that ends at once.

What the kernel's settings, a container and a security module allow can not be told from versions. Standard library
only.
"""

from __future__ import annotations

import os
import socket
import sys
import tempfile

from runtime.sandbox import fence, kernel, walls
from runtime.sandbox.doorman import Doorman
from runtime_client import landlock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

UID = 0x70FFFFFF
"""A user whom no job has."""


def try_namespaces(way: str) -> None:
    """For a process that ends right after. Raises OSError that says what is refused."""
    root = tempfile.mkdtemp(prefix="nightlab-probe-")
    try:
        if way == walls.USER_NAMESPACE:
            kernel.become_own_namespace_of_users()
        kernel.unshare(kernel.CLONE_NEWPID, "pid")
        pid = os.fork()
        if pid == 0:
            os._exit(_told(lambda: _try_inside(root, way)))
        _check(pid, "mounts in namespaces of its own")
    finally:
        os.rmdir(root)


def _try_inside(root: str, way: str) -> None:
    for flag, name in ((kernel.CLONE_NEWNS, "mount"), (kernel.CLONE_NEWIPC, "ipc"), (kernel.CLONE_NEWUTS, "uts")):
        kernel.unshare(flag, name)
    kernel.mount("none", "/", "", kernel.MS_REC | kernel.MS_PRIVATE)
    kernel.mount("tmpfs", root, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV)
    os.mkdir(root + "/proc")
    kernel.mount("proc", root + "/proc", "proc", kernel.MS_NOSUID | kernel.MS_NODEV)
    kernel.unshare(kernel.CLONE_NEWNET, "network")
    kernel.bring_loopback_up()
    if way == walls.ROOT:
        os.setgroups([])
        os.setresgid(UID, UID, UID)
        os.setresuid(UID, UID, UID)


def try_landlock() -> None:
    """The same: files, and a connection to what stands for the metrics gateway. Raises OSError."""
    version = landlock.abi()
    if version < fence.OLDEST_ABI:
        found = "it has none, or it is switched off" if version == 0 else f"it has version {version}"
        raise OSError(0, f"the kernel needs Landlock of version {fence.OLDEST_ABI}: {found}")
    with socket.create_server(("127.0.0.1", 0)) as server:
        box: dict[str, Any] = {
            "uid": os.geteuid(), "abi": version, "rlimits": {"RLIMIT_NPROC": 4096},
            "network": "none", "gateway": list(server.getsockname()), "binds": [], "writable": [], "devices": [],
            "own_output": "", "listed": [],
        }  # fmt: skip
        kernel.show_memory_to_its_user(False)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        pid = os.fork()
        if pid == 0:
            ours.close()
            os._exit(_told(lambda: _try_fenced(box, theirs)))
        theirs.close()
        _, descriptors, _, _ = socket.recv_fds(ours, 1, 1)
        if descriptors:
            kernel.drop_capabilities()
            Doorman(descriptors[0], box, set).begin()
        _check(pid, "being fenced by Landlock")


def _try_fenced(box: dict[str, Any], theirs: socket.socket) -> None:
    asking = fence.shut(box)
    socket.send_fds(theirs, [b"+"], [asking])
    os.close(asking)
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as asker:
            asker.connect(tuple(box["gateway"]))
    except OSError as error:
        raise OSError(error.errno, f"asking for the metrics gateway: {error.strerror or error}") from error


def _told(trial: Any) -> int:
    """The exit code of a child that tries; why not is printed."""
    try:
        trial()
    except OSError as error:
        print(error.strerror, flush=True)
        return error.errno or 1
    return 0


def _check(pid: int, what: str) -> None:
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status != 0:
        raise OSError(status, what)


def main(way: str) -> int:
    try:
        try_landlock() if way == walls.LANDLOCK else try_namespaces(way)
    except OSError as error:
        print(error.strerror)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
