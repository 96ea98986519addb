"""A full disk, as the store, the graph's checkpoints and files tell of it. Imports little."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

_FILE_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_SQLITE_FULL = frozenset({"SQLITE_FULL", "SQLITE_IOERR_SHMSIZE"})
_POSTGRES_FULL = "53100"


def is_disk_full(error: BaseException) -> bool:
    """Whether there was no space left: it is worth waiting, nothing else is wrong."""
    if isinstance(error, OSError):
        return error.errno in _FILE_FULL
    driver_error = getattr(error, "orig", None) or error
    name = getattr(driver_error, "sqlite_errorname", None)
    return name in _SQLITE_FULL or getattr(driver_error, "sqlstate", None) == _POSTGRES_FULL


class DiskFull(Exception):
    """Nothing could be written for want of space; it is tried again."""


@contextmanager
def full_disk_named() -> Iterator[None]:
    """Turn every such failure inside into `DiskFull`; all others stay what they are."""
    try:
        yield
    except Exception as error:
        if is_disk_full(error):
            raise DiskFull(str(error)) from error
        raise
