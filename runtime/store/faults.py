"""What a driver's error means in the store's words: one table for SQLite and PostgreSQL."""

from __future__ import annotations

from typing import TypeVar

import sqlalchemy as sa
from sqlalchemy import exc

from .writer import StoreFailed, StoreFull, StoreRefused, StoreUnusable

F = TypeVar("F", bound=StoreFailed)

_SQLITE_FULL = frozenset({"SQLITE_FULL", "SQLITE_IOERR_SHMSIZE"})
_SQLITE_DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB")
_PG_DISK_FULL = "53100"
_PG_DAMAGED = frozenset({"XX001", "XX002"})
"""Data corrupted, index corrupted."""


def translated(error: BaseException, url: sa.URL) -> BaseException:
    """The store's exception for a database error; every other exception stays what it is."""
    if isinstance(error, exc.DBAPIError):
        return _from_driver(error, url.render_as_string(hide_password=True))
    if isinstance(error, exc.StatementError):  # a column type refused the value before the database saw it
        return _caused(StoreRefused(f"the store refused a value: {error.orig}"), error)
    if isinstance(error, exc.SQLAlchemyError):
        return _caused(StoreFailed(f"the store failed: {error}"), error)
    return error


def _from_driver(error: exc.DBAPIError, where: str) -> StoreFailed:
    said = str(error.orig).strip()
    sqlite_name = str(getattr(error.orig, "sqlite_errorname", None) or "")
    sqlstate = str(getattr(error.orig, "sqlstate", None) or "")
    if sqlite_name in _SQLITE_FULL or sqlstate == _PG_DISK_FULL:
        return _caused(StoreFull(f"no space left for the database {where} ({said}): free some space"), error)
    if sqlite_name.startswith(_SQLITE_DAMAGED) or sqlstate in _PG_DAMAGED:
        return _caused(
            StoreUnusable(
                f"{where} is damaged or not a database of the runtime ({said}): move it away (a new one is made) "
                "or put back a copy"
            ),
            error,
        )
    if sqlite_name.startswith("SQLITE_BUSY"):
        return _caused(
            StoreFailed(f"{where} is locked ({said}): another process holds it; one runtime may use a database"), error
        )
    if sqlite_name.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_PERM")):
        return _caused(StoreFailed(f"{where} can not be opened for writing ({said}): check its permissions"), error)
    if isinstance(error, exc.IntegrityError | exc.DataError):
        return _caused(StoreRefused(f"the store refused a change: {said}"), error)
    return _caused(StoreFailed(f"the database {where} failed: {said}"), error)


def _caused(failure: F, error: BaseException) -> F:
    failure.__cause__ = error
    return failure
