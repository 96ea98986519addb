"""A full disk is an outage that is waited for; a database that is none is said. Nobody calls either a crash."""

from __future__ import annotations

import errno
import sqlite3
from pathlib import Path

import pytest
import sqlalchemy as sa

from agent.store.faults import DiskFull, StoreUnusable, full_disk_named, is_disk_full
from agent.store.store import AgentStore
from agent.store.tables import VERSION_TABLE


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


def test_a_damaged_database_is_said_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "agent.db").write_text("not a database, but long enough to be looked at as if it were one" * 20)
    with pytest.raises(StoreUnusable, match=r"agent\.db is damaged .* move it away"):
        AgentStore.open(tmp_path)


def test_a_database_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    AgentStore.open(tmp_path).close()
    connection = sqlite3.connect(tmp_path / "agent.db")
    connection.execute(f"UPDATE {VERSION_TABLE} SET version_num = '9999'")
    connection.commit()
    connection.close()
    with pytest.raises(StoreUnusable, match="newer nightlab"):
        AgentStore.open(tmp_path)
