"""A control group for each attempt, where this user may make one: everything it starts stays in it.

Version 2 wherever it is mounted, else one hierarchy of version 1. It is the second line: a supervisor is the subreaper
of its attempt and finds its tree without it; where no group can be made, nothing is missing but the second line.
Standard library only: the supervisors import this.
"""

from __future__ import annotations

import os
import signal

_HIERARCHIES = ("", "name=systemd", "pids", "freezer")
"""As /proc/self/cgroup names them, in the order they are tried. Empty: version 2."""
_PREFIX = "nightlab-"

_found: list[str | None] = []


def root() -> str | None:
    """Where groups can be made; None: nowhere. Tried once per process and inherited by its forks."""
    if not _found:
        _found.append(next((folder for folder in _candidates() if _is_usable(folder)), None))
    return _found[0]


def make(marker: str) -> str | None:
    """A new group for the attempt with that marker; None: it can not be had."""
    folder = root()
    if folder is None:
        return None
    path = os.path.join(folder, _PREFIX + marker)
    try:
        os.mkdir(path)
    except FileExistsError:
        return path
    except OSError:
        return None
    return path


def enter(path: str, pid: int = 0) -> None:
    """Move a process into the group; 0 is the calling one. Raises OSError.

    Takes some 10 ms where nothing was moved a moment ago: the kernel waits until all processors have heard of it.
    """
    with open(os.path.join(path, "cgroup.procs"), "wb", buffering=0) as file:
        file.write(b"%d" % pid)


def is_of(path: object, marker: str) -> bool:
    """Whether a recorded path is the group of that attempt and no other: a job can reach its records."""
    if not isinstance(path, str) or os.path.normpath(path) != path or os.path.basename(path) != _PREFIX + marker:
        return False
    return any(path.startswith(mount + os.sep) for _, mount, _ in _mounts())


def members(path: str) -> set[int]:
    """Living processes of the group and of groups that the attempt made below it."""
    found: set[int] = set()
    for folder in _with_those_below(path):
        try:
            with open(os.path.join(folder, "cgroup.procs"), "rb") as file:
                found.update(int(line) for line in file.read().split())
        except OSError:
            continue
    found.discard(0)
    return found


def kill(path: str) -> bool:
    """SIGKILL to all members, at once where the kernel can. False: there were none."""
    there = members(path)
    if not there:
        return False
    try:
        with open(os.path.join(path, "cgroup.kill"), "wb", buffering=0) as file:
            file.write(b"1")
    except OSError:  # Version 1, or a kernel before 5.14.
        for pid in there:
            try:
                os.kill(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                continue
    return True


def oom_kills(path: str) -> int | None:
    """How many processes of the group the kernel has killed for memory; None: it does not count them here."""
    try:
        with open(os.path.join(path, "memory.events"), "rb") as file:
            for line in file:
                if line.startswith(b"oom_kill "):
                    return int(line.split()[1])
    except OSError:
        return None
    return None


def remove(path: str) -> None:
    """Take an empty group away, with those below it. One that is not empty stays."""
    for folder in reversed(_with_those_below(path)):
        try:
            os.rmdir(folder)
        except OSError:
            continue


def _with_those_below(path: str) -> list[str]:
    """The group, and groups below it, parents first."""
    try:
        has_more = os.stat(path).st_nlink > 2  # Folders alone count there, as in every file system of the kernel's own.
    except OSError:
        return []
    return [folder for folder, _, _ in os.walk(path)] if has_more else [path]


def _candidates() -> list[str]:
    """Our own group in each hierarchy."""
    try:
        with open("/proc/self/cgroup", encoding="utf-8", errors="surrogateescape") as file:
            own = [line.rstrip("\n").split(":", 2) for line in file]
    except OSError:
        return []
    paths = {name: path for _, names, path in own for name in (names.split(",") if names else [""])}
    found = []
    for wanted in _HIERARCHIES:
        for name, mount, shown in _mounts():
            if wanted in name and wanted in paths:
                below = os.path.relpath(paths[wanted], shown)
                if not below.startswith(".."):
                    found.append(os.path.normpath(os.path.join(mount, below)))
    return found


def _mounts() -> list[tuple[frozenset[str], str, str]]:
    """(hierarchies, mount point, which of its groups is shown there) of each control group mount, see proc(5)."""
    found = []
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().splitlines()
    except OSError:
        return []
    for line in lines:
        before, _, after = line.partition(" - ")
        kind, _, rest = after.partition(" ")
        words = before.split(" ")
        if kind == "cgroup2":
            found.append((frozenset({""}), words[4], words[3]))
        elif kind == "cgroup":
            found.append((frozenset(rest.split(" ")[-1].split(",")), words[4], words[3]))
    return found


def _is_usable(folder: str) -> bool:
    if not os.access(os.path.join(folder, "cgroup.procs"), os.W_OK):
        return False
    probe = os.path.join(folder, f"{_PREFIX}try-{os.getpid()}")
    try:
        os.mkdir(probe)
    except OSError:
        return False
    is_usable = os.access(os.path.join(probe, "cgroup.procs"), os.W_OK)
    os.rmdir(probe)
    return is_usable
