"""Whether an ordinary user can seal here: the namespaces are made for real, in a process that ends at once.

What the kernel's settings and a security module allow can not be told from versions. Standard library only.
"""

from __future__ import annotations

import os
import sys
import tempfile

from runtime.sandbox import kernel


def try_namespaces() -> None:
    """For a process that ends right after. Raises OSError that says what is refused."""
    root = tempfile.mkdtemp(prefix="nightlab-probe-")
    try:
        kernel.become_own_namespace_of_users()
        kernel.unshare(kernel.CLONE_NEWPID, "pid")
        pid = os.fork()
        if pid == 0:
            os._exit(_try_inside(root))
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if status != 0:
            raise OSError(status, "mounts in namespaces of its own")
    finally:
        os.rmdir(root)


def _try_inside(root: str) -> int:
    try:
        for flag, name in ((kernel.CLONE_NEWNS, "mount"), (kernel.CLONE_NEWIPC, "ipc"), (kernel.CLONE_NEWUTS, "uts")):
            kernel.unshare(flag, name)
        kernel.mount("none", "/", "", kernel.MS_REC | kernel.MS_PRIVATE)
        kernel.mount("tmpfs", root, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV)
        os.mkdir(root + "/proc")
        kernel.mount("proc", root + "/proc", "proc", kernel.MS_NOSUID | kernel.MS_NODEV)
        kernel.unshare(kernel.CLONE_NEWNET, "network")
        kernel.bring_loopback_up()
    except OSError as error:
        print(error.strerror, flush=True)
        return error.errno or 1
    return 0


def main() -> int:
    try:
        try_namespaces()
    except OSError as error:
        print(error.strerror)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
