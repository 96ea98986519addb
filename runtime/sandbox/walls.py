"""Put a process into its box: what it sees of the file system, who it is, what it may ask of the kernel.

Two steps, since the first process of a box (`runtime.node.box`) has the first alone: `enclose` gives a file tree of its
own, `shed` takes network, user, rights and system calls away. Standard library only: the supervisors import this.
"""

from __future__ import annotations

import os
import resource
import socket

from runtime.sandbox import filter as calls
from runtime.sandbox import kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LAYERS = ("mount", "pid", "ipc", "uts", "net", "uid", "capabilities", "no_new_privs", "seccomp", "rlimit", "cgroup")
"""All that hold a sealed job; `net` only without an open network, `cgroup` where the machine lets nightlab have it."""
ROOT, USER_NAMESPACE, LANDLOCK = "root", "user namespace", "landlock"
"""How a box is made: by root, for a user of the job's own; by an ordinary user, for the job as that same user; without
namespaces (`runtime.sandbox.fence`)."""
DEVICES = ("null", "zero", "full", "random", "urandom")
_QUIET = kernel.MS_NOSUID | kernel.MS_NODEV
_OLD = ".machine"


def enclose(box: dict[str, Any]) -> None:
    """In the first process of the new pid namespace: a mount tree in which only what `box` names exists.

    Raises:
        OSError: the kernel does not let it; says what.
    """
    kernel.unshare(kernel.CLONE_NEWNS, "mount")
    kernel.unshare(kernel.CLONE_NEWIPC, "ipc")
    kernel.unshare(kernel.CLONE_NEWUTS, "uts")
    kernel.mount("none", "/", "", kernel.MS_REC | kernel.MS_PRIVATE)
    root = box["root"]
    kernel.mount("tmpfs", root, "tmpfs", _QUIET, "mode=755,size=4m")
    _fill(root, box)
    os.mkdir(os.path.join(root, _OLD))
    kernel.pivot_into(root, os.path.join(root, _OLD))
    kernel.mount("none", "/", "", kernel.MS_REMOUNT | kernel.MS_BIND | kernel.MS_RDONLY | _QUIET)


def _fill(root: str, box: dict[str, Any]) -> None:
    os.umask(0o022)
    for folder, options in (("tmp", f"mode=1777,size={box['tmp_bytes']}"), ("proc", ""), ("dev", "mode=755,size=64k")):
        os.mkdir(os.path.join(root, folder))
        kind = "proc" if folder == "proc" else "tmpfs"
        flags = kernel.MS_NOSUID | (0 if folder == "dev" else kernel.MS_NODEV)
        kernel.mount(kind, os.path.join(root, folder), kind, flags, options)
    _make_devices(os.path.join(root, "dev"), box)
    os.mkdir(root + box["home"], 0o700)
    os.chown(root + box["home"], box["uid"], box["gid"])
    for path, target in box["links"]:
        os.symlink(target, root + path)
    for path, text in box["files"]:
        os.makedirs(os.path.dirname(root + path), exist_ok=True)
        with open(root + path, "w", encoding="utf-8") as file:
            file.write(text)
    tops = _tops([path for path, _ in box["binds"]], box["home"])
    for top in tops:
        os.mkdir(root + top)
        kernel.mount("tmpfs", root + top, "tmpfs", _QUIET, "mode=755,size=4m")
    for path, is_writable in box["binds"]:
        _bind(path, root + path, is_writable=is_writable)
    for path in box["without_links"]:
        kernel.restrict_mount(root + path, kernel.MOUNT_ATTR_NOSYMFOLLOW)
    for path in box["hidden"]:
        _hide(root, path)
    for top in tops:
        kernel.mount("none", root + top, "", kernel.MS_REMOUNT | kernel.MS_BIND | kernel.MS_RDONLY | _QUIET)


def _tops(binds: list[str], home: str) -> list[str]:
    """Folders of `/tmp` that exist only as the way to what is bound below them: the job is not to write beside it."""
    below = {"/tmp/" + path.split("/")[2] for path in binds if path.startswith("/tmp/")}
    return sorted(below - {*binds, home})


def _bind(source: str, target: str, *, is_writable: bool, is_device: bool = False) -> None:
    """What is not there is not bound: a job that needs it says so itself."""
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    elif os.path.exists(source):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if not os.path.exists(target):
            os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644))
    else:
        return
    # Of the kernel's own files only the folder itself: control groups are mounted below it.
    below = 0 if source.startswith("/sys/") else kernel.MS_REC
    kernel.mount(source, target, "", kernel.MS_BIND | below)
    attributes = kernel.MOUNT_ATTR_NOSUID
    attributes |= 0 if is_writable else kernel.MOUNT_ATTR_RDONLY
    kernel.restrict_mount(target, attributes | (0 if is_device else kernel.MOUNT_ATTR_NODEV))


def _hide(root: str, path: str) -> None:
    """Nobody in the box can open the file: for one that lies in a folder which it is to see, and is of its own user."""
    blank = os.path.join(root, "dev", ".hidden")
    os.close(os.open(blank, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o000))
    kernel.mount(blank, root + path, "", kernel.MS_BIND)
    kernel.restrict_mount(root + path, kernel.MOUNT_ATTR_RDONLY | kernel.MOUNT_ATTR_NOSUID | kernel.MOUNT_ATTR_NODEV)


def _make_devices(folder: str, box: dict[str, Any]) -> None:
    for name in (*DEVICES, *box["devices"]):
        _bind(f"/dev/{name}", os.path.join(folder, name), is_writable=True, is_device=True)
    for name, target in (("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        os.symlink(target, os.path.join(folder, name))
    os.mkdir(os.path.join(folder, "shm"))
    kernel.mount("tmpfs", os.path.join(folder, "shm"), "tmpfs", _QUIET, f"mode=1777,size={box['tmp_bytes']}")


def shut_network(port: int) -> socket.socket:
    """A network namespace with loopback alone; the socket at which the metrics gateway is to be answered in it.

    Raises:
        OSError: the kernel does not let it; says what.
    """
    kernel.unshare(kernel.CLONE_NEWNET, "network")
    kernel.bring_loopback_up()
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(64)
    return listener


def bound(rlimits: dict[str, int]) -> None:
    """By the kernel's names of limits; a lower one that is there stays."""
    for name, value in rlimits.items():
        kind = getattr(resource, name)
        _, hard = resource.getrlimit(kind)
        most = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (most, most))


def shed(box: dict[str, Any]) -> None:
    """In the process that is about to become the command: bounds, another user, no rights, fewer system calls.

    Raises:
        OSError: the kernel does not let it; says what.
    """
    bound(box["rlimits"])
    kernel.forbid_new_rights()
    program = calls.program(os.uname().machine)
    if box["how"] == ROOT:
        os.setgroups([])  # In a user namespace nobody may: its groups stay those of its user.
    os.setresgid(box["gid"], box["gid"], box["gid"])
    kernel.drop_bounding()
    os.setresuid(box["uid"], box["uid"], box["uid"])
    kernel.drop_capabilities()
    os.umask(0o022)
    kernel.show_memory_to_its_user(True)  # Changing the user hid even its own files in /proc from it.
    kernel.filter_calls(program)
