"""Run a script of these tests as another user, from root: `python other_user.py UID BEFORE SCRIPT WORDS...`.

In a network of its own, in which an address of the internet is another one of this machine.

Its user can reach the interpreter though that lies in root's home: in a mount namespace of its own, folders on the way
that are for root alone are replaced by ones that lead to the interpreter only.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from runtime.sandbox import kernel

UID = 1234
FAR = "192.0.2.1"
_SIOCSIFADDR = 0x8916
NO_USER_NAMESPACES, IN_A_CONTAINER, ROOT = "no user namespaces", "root in a container", "root"
_OF_A_CONTAINER = (0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 27, 29, 31)
"""The capabilities that container engines leave to root: none of them makes namespaces or mounts."""


def run_as_other_user(script: Path, *words: str, before: str = "") -> subprocess.CompletedProcess[str]:
    """`before`: NO_USER_NAMESPACES, IN_A_CONTAINER, ROOT, or nothing."""
    command = [
        sys.executable,
        __file__,
        "0" if before in (IN_A_CONTAINER, ROOT) else str(UID),
        before,
        str(script),
        *words,
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def open_the_way(to: Path) -> None:
    for folder in reversed(to.parents):
        if folder.stat().st_mode & 0o001 or folder == Path("/"):
            continue
        below = folder / to.relative_to(folder).parts[0]
        with tempfile.TemporaryDirectory() as aside:
            kernel.mount(str(below), aside, "", kernel.MS_BIND | kernel.MS_REC)
            kernel.mount("tmpfs", str(folder), "tmpfs", 0, "mode=755")
            below.mkdir()
            kernel.mount(aside, str(below), "", kernel.MS_BIND | kernel.MS_REC)
            subprocess.run(["umount", aside], check=True)


def give_far_address() -> None:
    """An address of the internet, in a network of our own: what listens there is far from the machine."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
        address = struct.pack("16sHH4s8x", b"lo:1", socket.AF_INET, 0, socket.inet_aton(FAR))
        fcntl.ioctl(asker, _SIOCSIFADDR, address)


def main() -> None:
    uid, before, script, *words = sys.argv[1:]
    for flag, name in ((kernel.CLONE_NEWNS, "mount"), (kernel.CLONE_NEWNET, "network"), (kernel.CLONE_NEWUTS, "uts")):
        kernel.unshare(flag, name)
    kernel.mount("none", "/", "", kernel.MS_REC | kernel.MS_PRIVATE)
    kernel.bring_loopback_up()
    give_far_address()
    open_the_way(Path(sys.executable).resolve())
    os.setgroups([])
    os.setresgid(int(uid), int(uid), int(uid))
    os.setresuid(int(uid), int(uid), int(uid))
    os.environ["HOME"] = "/tmp"
    if before == IN_A_CONTAINER:
        for capability in set(range(64)) - set(_OF_A_CONTAINER):
            with contextlib.suppress(OSError):
                kernel._prctl(kernel._PR_CAPBSET_DROP, capability)
    if before == NO_USER_NAMESPACES:
        # The number counts below a namespace of users: the machine keeps its own.
        kernel.show_memory_to_its_user(True)  # Else it may not say which users its namespace has.
        kernel.become_own_namespace_of_users()
        Path("/proc/sys/user/max_user_namespaces").write_text("0")
    os.execv(sys.executable, [sys.executable, script, *words])


if __name__ == "__main__":
    main()
