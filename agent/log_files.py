"""Logs of processes are bounded: 10 MiB and one predecessor of as much each, so many of a kind. Standard library."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

LOG_LIMIT_BYTES = 10 * 1024 * 1024


def rotate(log: Path) -> None:
    """Move a log that has grown beyond 10 MiB to `NAME.1`, before a process that writes it is started."""
    if _is_large(log):
        log.replace(_before(log))


def cut(log: Path) -> None:
    """The same while a process appends to it: what is there is copied, then the file begins anew.

    A line written between the two is lost. On a full disk there is no copy; the space is what is needed then.
    """
    if not _is_large(log):
        return
    with suppress(OSError):
        shutil.copyfile(log, _before(log))
    os.truncate(log, 0)


def forget_oldest(folder: Path, pattern: str, *, keep: int, but: Collection[Path] = ()) -> None:
    """Remove all but the newest logs of one kind, with their predecessors.

    Args:
        pattern: of their names, as `session-*.log`.
        but: those of processes that live; they are never removed.
    """
    dated = []
    for log in folder.glob(pattern):
        with suppress(FileNotFoundError):
            dated.append((log.stat().st_mtime, log))
    for _, log in sorted(dated, reverse=True)[keep:]:
        if log not in but:
            log.unlink(missing_ok=True)
            _before(log).unlink(missing_ok=True)


def _before(log: Path) -> Path:
    return log.with_name(f"{log.name}.1")


def _is_large(log: Path) -> bool:
    try:
        return log.stat().st_size > LOG_LIMIT_BYTES
    except FileNotFoundError:
        return False
