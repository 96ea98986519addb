"""A full disk, as the store, the graph's checkpoints and files tell of it; a database that is none. Imports little."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

_FILE_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_SQLITE_FULL = frozenset({"SQLITE_FULL", "SQLITE_IOERR_SHMSIZE"})
_POSTGRES_FULL = "53100"
_SQLITE_DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB")
_SQLITE_CLOSED = ("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_PERM")


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


class StoreUnusable(Exception):
    """The agent's database is not what it should be; the message says what to do about it."""


def why_unusable(error: BaseException, where: str) -> StoreUnusable | None:
    """What to tell the person about a failure to open the database; None: it is another kind of failure."""
    driver_error = getattr(error, "orig", None) or error
    name = str(getattr(driver_error, "sqlite_errorname", None) or "")
    if name.startswith(_SQLITE_DAMAGED):
        return StoreUnusable(
            f"{where} is damaged or not the agent's database ({driver_error}): put back a copy, or move it away; "
            "then a new one is made, without the sessions so far"
        )
    if name.startswith(_SQLITE_CLOSED):
        return StoreUnusable(f"{where} can not be opened for writing ({driver_error}): check its permissions")
    return None
