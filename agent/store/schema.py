"""Opening the agent's database: engine, pragmas, migrations. Alembic is imported only when there is work for it."""

from __future__ import annotations

import fcntl
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from agent.store.faults import StoreUnusable
from agent.store.tables import HEAD, VERSION_TABLE

_BUSY_TIMEOUT_MS = 10_000
_LOCK_POLL_S = 0.02
_WRITES = "nightlab_writes"


def open_engine(url: str) -> sa.Engine:
    """An engine for SQLite (WAL, short waits instead of `database is locked`) or PostgreSQL. Touches nothing yet."""
    engine = sa.create_engine(url, pool_pre_ping=not url.startswith("sqlite"))
    if engine.dialect.name == "sqlite":
        sa.event.listen(engine, "connect", _set_pragmas)
        sa.event.listen(engine, "begin", _begin)
    return engine


@contextmanager
def writing(engine: sa.Engine) -> Iterator[sa.Connection]:
    """One short write transaction; on SQLite it takes the write lock at once, so it never fails half-way."""
    with engine.connect().execution_options(**{_WRITES: True}) as connection, connection.begin():
        yield connection


def _set_pragmas(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None
    connection.execute(f"PRAGMA busy_timeout={_BUSY_TIMEOUT_MS}")
    write_ahead(connection)
    connection.execute("PRAGMA synchronous=NORMAL")


def write_ahead(connection: sqlite3.Connection) -> None:
    """Switch the file to WAL. SQLite refuses this at once, without its busy timeout, while another connection opens it.

    Source: https://www.sqlite.org/c3ref/busy_handler.html, the handler may be left out where waiting could deadlock.
    """
    deadline_s = time.monotonic() + _BUSY_TIMEOUT_MS / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline_s:
                raise
            time.sleep(_LOCK_POLL_S)
        else:
            return


def _begin(connection: sa.Connection) -> None:
    is_writing = connection.get_execution_options().get(_WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if is_writing else "BEGIN")


def migrate(engine: sa.Engine, *, lock_path: Path | None) -> None:
    """Bring the tables to the newest version; safe when several processes open the store at once.

    Args:
        lock_path: a file to lock while migrating (SQLite); None takes an advisory lock in PostgreSQL.
    """
    if _version(engine) == HEAD:
        return
    if lock_path is None:
        with engine.begin() as connection:
            connection.execute(sa.text("SELECT pg_advisory_xact_lock(7070001)"))
            _upgrade(connection)
        return
    with lock_path.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _version(engine) != HEAD:
            with writing(engine) as connection:
                _upgrade(connection)


def _version(engine: sa.Engine) -> str | None:
    if not sa.inspect(engine).has_table(VERSION_TABLE):
        return None
    with engine.connect() as connection:
        found: Any = connection.execute(sa.text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()
    return None if found is None else str(found)


def _upgrade(connection: sa.Connection) -> None:
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, "head")
    except CommandError as error:
        where = connection.engine.url.render_as_string(hide_password=True).removeprefix("sqlite:///")
        raise StoreUnusable(
            f"{where} was written by a newer nightlab ({error}): use that one, or another home folder"
        ) from error
