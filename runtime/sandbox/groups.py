"""Control groups that bound what a box may use: version 1 hierarchies, or version 2 where they are delegated.

Standard library only: the supervisors import this.
"""

from __future__ import annotations

import os

_PERIOD_US = 100_000
_V1 = {"memory": "memory.limit_in_bytes", "pids": "pids.max", "cpu": "cpu.cfs_quota_us"}
_V2 = {"memory": "memory.max", "pids": "pids.max", "cpu": "cpu.max"}


def make(name: str, bounds: dict[str, int]) -> list[str]:
    """New groups with these bounds (`memory` in bytes, `pids`, `cpu` in cores), as far as they can be had.

    Returns their folders; nothing of one that can not be bounded stays.
    """
    found: list[str] = []
    for controller, value in bounds.items():
        for folder, is_v2 in _parents(controller):
            path = os.path.join(folder, name)
            if _bound(path, controller, value, is_v2=is_v2):
                found.append(path)
                break
    return sorted(set(found))


def enter(paths: list[str]) -> None:
    """Move the calling process. Raises OSError."""
    for path in paths:
        with open(os.path.join(path, "cgroup.procs"), "wb", buffering=0) as file:
            file.write(b"0")


def remove(paths: list[str]) -> None:
    """Take empty groups away."""
    for path in paths:
        try:
            os.rmdir(path)
        except OSError:
            continue


def has_killed(paths: list[str]) -> bool:
    """Whether the kernel has killed one of the members for memory."""
    for path in paths:
        for name in ("memory.oom_control", "memory.events"):
            try:
                with open(os.path.join(path, name), encoding="ascii") as file:
                    if any(line.startswith("oom_kill ") and line.split()[1] != "0" for line in file):
                        return True
            except OSError:
                continue
    return False


def _bound(path: str, controller: str, value: int, *, is_v2: bool) -> bool:
    text = str(value * _PERIOD_US if controller == "cpu" else value)
    if controller == "cpu" and is_v2:
        text = f"{text} {_PERIOD_US}"
    try:
        os.makedirs(path, exist_ok=True)
        with open(os.path.join(path, (_V2 if is_v2 else _V1)[controller]), "w", encoding="ascii") as file:
            file.write(text)
    except OSError:
        remove([path])
        return False
    return True


def _parents(controller: str) -> list[tuple[str, bool]]:
    """Our own group in the hierarchy of that controller, and whether it is of version 2; see proc(5)."""
    try:
        with open("/proc/self/cgroup", encoding="utf-8", errors="surrogateescape") as file:
            own = [line.rstrip("\n").split(":", 2) for line in file]
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            mounts = [line.rstrip("\n").partition(" - ") for line in file]
    except OSError:
        return []
    paths = {name: path for _, names, path in own for name in (names.split(",") if names else [""])}
    found = []
    for before, _, after in mounts:
        kind, words = after.split(" ")[0], before.split(" ")
        is_v2 = kind == "cgroup2"
        wanted = "" if is_v2 else controller
        if wanted in paths and (is_v2 or (kind == "cgroup" and controller in after.split(" ")[-1].split(","))):
            below = os.path.relpath(paths[wanted], words[3])
            if not below.startswith(".."):
                found.append((os.path.normpath(os.path.join(words[4], below)), is_v2))
    return sorted(found, key=lambda item: item[1])
