"""Which cores the processes of an attempt may run on."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from runtime.node import processes

MOST_PASSES = 20
"""Over a tree that goes on forking: each pass finds fewer threads that were forked by one not pinned yet."""


def is_pinned(pid: int, cores: frozenset[int]) -> bool:
    """Whether `pin` has come to its end for the tree below this process; also when the process is gone."""
    try:
        return os.sched_getaffinity(pid) == cores
    except ProcessLookupError:
        return True


def pin(root: int, cores: frozenset[int]) -> None:
    """Move a process and all below it to these cores. What they fork later inherits it.

    A thread that chose some of its cores itself keeps those of them that it may have. The root comes last, so that
    `is_pinned` tells of the whole tree.
    """
    try:
        before = frozenset(os.sched_getaffinity(root))
    except ProcessLookupError:
        return
    for _ in range(MOST_PASSES):
        below = processes.descendants([root], processes.table())
        if not sum(_move(thread, before, cores) for pid in below for thread in _threads(pid)):
            break
    with contextlib.suppress(ProcessLookupError):
        os.sched_setaffinity(root, cores)


def _move(thread: int, before: frozenset[int], cores: frozenset[int]) -> bool:
    """Whether it had to be moved."""
    try:
        present = frozenset(os.sched_getaffinity(thread))
        wanted = cores if present == before else (present & cores or cores)
        if present == wanted:
            return False
        os.sched_setaffinity(thread, wanted)
    except (ProcessLookupError, PermissionError):
        return False  # It is gone, or has become another user's.
    return True


def _threads(pid: int) -> Iterator[int]:
    try:
        names = [entry.name for entry in Path(f"/proc/{pid}/task").iterdir()]
    except (FileNotFoundError, ProcessLookupError):
        return
    yield from map(int, names)
