"""Open a database: SQLite by file, PostgreSQL by URL, each with the settings that the store relies on."""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event, exc

from .writer import StoreFailed, StoreUnusable

BUSY_TIMEOUT_MS = 5_000
"""How long a statement waits for another process's lock before it fails."""
_LOCK_POLL_S = 0.02
_WAL_LIMIT_BYTES = 64 * 1024 * 1024
_PG_NAMES = frozenset({"postgres", "postgresql", "postgresql+psycopg"})


def open_engine(url: str | sa.URL, *, read_only: bool = False) -> sa.Engine:
    """The engine for `sqlite:///FILE` or `postgresql://...`; connects lazily.

    A writing engine on SQLite takes the write lock when a transaction begins; read through `SqlWriter.read`, or a
    `read_only` engine, which sees one consistent state for each transaction and can change nothing.

    Raises:
        StoreUnusable: another kind of database, or SQLite in memory.
        StoreFailed: the folder of the SQLite file does not exist or may not be written.
    """
    parsed = _parse(url)
    if parsed.drivername == "sqlite":
        return _open_sqlite(parsed, read_only)
    return _open_postgres(parsed, read_only)


def _parse(url: str | sa.URL) -> sa.URL:
    try:
        parsed = sa.make_url(url)
    except exc.ArgumentError as error:
        raise StoreUnusable("the database URL can not be read: use sqlite:///FILE or postgresql://...") from error
    if parsed.drivername in _PG_NAMES:
        return parsed.set(drivername="postgresql+psycopg")
    if parsed.drivername not in ("sqlite", "sqlite+pysqlite"):
        raise StoreUnusable(f"database {parsed.drivername!r} is unknown: use sqlite:///FILE or postgresql://...")
    if not parsed.database or parsed.database == ":memory:":
        raise StoreUnusable("a database in memory would forget everything: use sqlite:///FILE")
    return parsed.set(drivername="sqlite")


def _open_sqlite(url: sa.URL, read_only: bool) -> sa.Engine:
    _make_private_file(Path(str(url.database)))
    engine = sa.create_engine(url)
    begin = "BEGIN" if read_only else "BEGIN IMMEDIATE"

    def on_connect(connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = None  # transactions begin below, not by guess of the driver
        connection.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
        _write_ahead(connection)
        connection.execute("PRAGMA synchronous=FULL")  # a commit is on disk when it returns
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute(f"PRAGMA journal_size_limit={_WAL_LIMIT_BYTES}")
        if read_only:
            connection.execute("PRAGMA query_only=ON")

    def on_begin(connection: sa.Connection) -> None:
        connection.exec_driver_sql(begin)

    event.listen(engine, "connect", on_connect)
    event.listen(engine, "begin", on_begin)
    return engine


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Switch the file to WAL. SQLite refuses this at once, without its busy timeout, while another connection opens it.

    Source: https://www.sqlite.org/c3ref/busy_handler.html, the handler may be left out where waiting could deadlock.
    """
    deadline_s = time.monotonic() + BUSY_TIMEOUT_MS / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline_s:
                raise
            time.sleep(_LOCK_POLL_S)
        else:
            return


def _make_private_file(path: Path) -> None:
    """Make the file with mode 0600: job specs hold environment variables. Its WAL gets the same mode.

    A file that is there is not touched: to close it again would take the locks of all this process's connections to it
    (https://www.sqlite.org/howtocorrupt.html, section 2.2).
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        return
    except OSError as error:
        raise StoreFailed(f"the database {path} can not be opened: {error.strerror}") from error


def _open_postgres(url: sa.URL, read_only: bool) -> sa.Engine:
    try:
        engine = sa.create_engine(
            url,
            isolation_level="REPEATABLE READ" if read_only else "READ COMMITTED",
            pool_pre_ping=True,  # the server may have been restarted since
            connect_args={"connect_timeout": 10},
        )
    except ImportError as error:
        raise StoreUnusable("PostgreSQL needs an extra: pip install 'nightlab[postgres]'") from error
    if read_only:
        event.listen(engine, "connect", _forbid_writing)
    return engine


def _forbid_writing(connection: Any, _record: object) -> None:
    connection.read_only = True
