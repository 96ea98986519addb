"""A full disk is an outage: the session waits for space and goes on, and nobody calls it a crash."""

from __future__ import annotations

import errno
import sqlite3
from pathlib import Path

import pytest
import sqlalchemy as sa

from agent.store.faults import DiskFull, full_disk_named, is_disk_full


def small_database(folder: Path) -> sa.Engine:
    """One that is full after a few pages."""
    engine = sa.create_engine(f"sqlite:///{folder / 'small.db'}")
    sa.event.listen(engine, "connect", lambda connection, _: connection.execute("PRAGMA max_page_count=4"))
    return engine


def test_a_database_without_space_is_told_from_other_failures(tmp_path: Path) -> None:
    engine = small_database(tmp_path)
    with engine.connect() as connection:
        connection.exec_driver_sql("CREATE TABLE t (x TEXT)")
        with pytest.raises(DiskFull), full_disk_named():
            connection.exec_driver_sql("INSERT INTO t VALUES (?)", ("x" * 100_000,))
        with pytest.raises(sa.exc.OperationalError), full_disk_named():
            connection.exec_driver_sql("SELECT * FROM nothing")


def test_the_driver_alone_and_files_are_known_too(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "small.db")
    connection.execute("PRAGMA max_page_count=4")
    connection.execute("CREATE TABLE t (x TEXT)")
    with pytest.raises(DiskFull), full_disk_named():
        connection.execute("INSERT INTO t VALUES (?)", ("x" * 100_000,))
    connection.close()
    assert is_disk_full(OSError(errno.ENOSPC, "full"))
    assert not is_disk_full(OSError(errno.EACCES, "not allowed"))
