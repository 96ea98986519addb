"""Run a script of these tests as an ordinary user, from root: `python other_user.py UID BEFORE SCRIPT WORDS...`.

Its user can reach the interpreter though that lies in root's home: in a mount namespace of its own, folders on the way
that are for root alone are replaced by ones that lead to the interpreter only.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from runtime.sandbox import kernel

UID = 1234
NO_USER_NAMESPACES = "no user namespaces"


def run_as_other_user(script: Path, *words: str, before: str = "") -> subprocess.CompletedProcess[str]:
    """`before`: NO_USER_NAMESPACES, or nothing."""
    command = [sys.executable, __file__, str(UID), before, str(script), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


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


def main() -> None:
    uid, before, script, *words = sys.argv[1:]
    kernel.unshare(kernel.CLONE_NEWNS, "mount")
    kernel.mount("none", "/", "", kernel.MS_REC | kernel.MS_PRIVATE)
    open_the_way(Path(sys.executable).resolve())
    os.setgroups([])
    os.setresgid(int(uid), int(uid), int(uid))
    os.setresuid(int(uid), int(uid), int(uid))
    os.environ["HOME"] = "/tmp"
    if before == NO_USER_NAMESPACES:
        # The number counts below a namespace of users: the machine keeps its own.
        kernel.show_memory_to_its_user(True)  # Else it may not say which users its namespace has.
        kernel.become_own_namespace_of_users()
        Path("/proc/sys/user/max_user_namespaces").write_text("0")
    os.execv(sys.executable, [sys.executable, script, *words])


if __name__ == "__main__":
    main()
