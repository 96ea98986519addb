from __future__ import annotations

import re
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

import runtime.store.migrate as migrating
from runtime.store import journal
from runtime.store.engine import open_engine
from runtime.store.migrate import HEAD, VERSION_TABLE, known_versions, migrate
from runtime.store.tables import metadata
from runtime.store.writer import StoreFailed, StoreUnusable


def test_migrations_and_tables_agree(fresh_url: str) -> None:
    engine = open_engine(fresh_url)
    migrate(engine)
    with engine.connect() as connection:
        options = {"compare_type": True, "compare_server_default": True, "version_table": VERSION_TABLE}
        differences = compare_metadata(MigrationContext.configure(connection, opts=options), metadata)
    engine.dispose()
    assert differences == []


def test_the_head_named_in_code_is_the_newest_script() -> None:
    scripts = ScriptDirectory(str(Path(migrating.__file__).parent / "migrations"))
    assert scripts.get_heads() == [HEAD]
    assert {script.revision for script in scripts.walk_revisions()} == known_versions()
    assert all(len(version) <= 32 for version in known_versions())


def test_migrating_again_changes_nothing(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        journal.write_snapshot(connection, seq=0, at_s=1.0, payload={"kept": True})
    migrate(engine)
    with engine.connect() as connection:
        kept = journal.read_snapshot(connection)
    assert kept is not None
    assert kept.payload == {"kept": True}


def test_a_database_at_head_does_not_import_alembic(migrated_file: Path, tmp_path: Path) -> None:
    shutil.copy(migrated_file, tmp_path / "runtime.db")
    program = (
        "import sys; from runtime.store.engine import open_engine; from runtime.store.migrate import migrate; "
        f"migrate(open_engine('sqlite:///{tmp_path / 'runtime.db'}')); "
        "sys.exit('alembic' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], timeout=60).returncode == 0


def test_several_servers_may_migrate_at_once(fresh_url: str) -> None:
    failures: list[BaseException] = []

    def one() -> None:
        engine = open_engine(fresh_url)
        try:
            migrate(engine)
        except StoreFailed as error:
            failures.append(error)
        engine.dispose()

    threads = [threading.Thread(target=one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert failures == []


def test_a_file_that_is_being_opened_by_another_is_waited_for(tmp_path: Path) -> None:
    """SQLite's own busy timeout does not cover the change to WAL."""
    file = tmp_path / "runtime.db"
    first = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
    first.execute("BEGIN IMMEDIATE")
    asked = threading.Event()
    engine = open_engine(f"sqlite:///{file}")
    sa.event.listen(engine, "do_connect", lambda *_: asked.set())
    opener = threading.Thread(target=migrate, args=(engine,))
    opener.start()
    assert asked.wait(30)
    opener.join(0.2)
    assert opener.is_alive()
    first.rollback()
    first.close()
    opener.join(30)
    assert not opener.is_alive()
    with engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert sa.inspect(connection).has_table("events")
    engine.dispose()


def test_refuses_a_newer_schema_and_says_what_to_do(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        connection.execute(sa.text(f"UPDATE {VERSION_TABLE} SET version_num = '0999_from_the_future'"))
    with pytest.raises(StoreUnusable, match=r"'0999_from_the_future', newer than .*: upgrade nightlab, or put back"):
        migrate(engine)


def test_refuses_the_tables_of_another_program_and_leaves_them(fresh_url: str) -> None:
    engine = open_engine(fresh_url)
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE metrics (mine INTEGER)"))
    with pytest.raises(StoreUnusable, match="'metrics' that another program made: give the runtime a database of its"):
        migrate(engine)
    with engine.connect() as connection:
        assert sa.inspect(connection).get_table_names() == ["metrics"]
    engine.dispose()


def test_tables_beside_ours_are_left_alone(fresh_url: str) -> None:
    engine = open_engine(fresh_url)
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE notes (mine INTEGER)"))
    migrate(engine)
    with engine.connect() as connection:
        assert sa.inspect(connection).has_table("notes")
        assert sa.inspect(connection).has_table("events")
    engine.dispose()


def test_a_migration_that_fails_half_way_leaves_nothing(fresh_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = open_engine(fresh_url)

    def fail_late(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        if re.match(r"\s*CREATE TABLE outbox", statement):
            raise sa.exc.OperationalError(statement, None, Exception("no power"))

    sa.event.listen(engine, "before_cursor_execute", fail_late)
    with pytest.raises(StoreFailed, match="no power"):
        migrate(engine)
    sa.event.remove(engine, "before_cursor_execute", fail_late)
    with engine.connect() as connection:
        assert sa.inspect(connection).get_table_names() == []
    migrate(engine)
    with engine.connect() as connection:
        assert sa.inspect(connection).has_table("outbox")
    engine.dispose()


@pytest.mark.parametrize(
    "content", [b"this is a text file, and not a short one at all\n" * 200, b"SQLite format 3\0xx"]
)
def test_refuses_a_file_that_is_no_database_and_leaves_it(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "runtime.db"
    path.write_bytes(content)
    with pytest.raises(StoreUnusable, match=r"runtime\.db is damaged or not a database .* move it away"):
        migrate(open_engine(f"sqlite:///{path}"))
    assert path.read_bytes() == content


def test_a_damaged_database_is_named(migrated_file: Path, tmp_path: Path) -> None:
    path = tmp_path / "runtime.db"
    content = bytearray(migrated_file.read_bytes())
    content[100:4096] = b"\xff" * 3996
    path.write_bytes(content)
    with pytest.raises(StoreUnusable, match=r"runtime\.db is damaged"):
        migrate(open_engine(f"sqlite:///{path}"))


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("sqlite://", "in memory"),
        ("sqlite:///:memory:", "in memory"),
        ("mysql://localhost/x", "'mysql' is unknown"),
        ("not a url", "can not be read"),
    ],
)
def test_refuses_a_url_that_can_not_hold_the_store(url: str, said: str) -> None:
    with pytest.raises(StoreUnusable, match=said):
        open_engine(url)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreFailed, match=r"nowhere/runtime\.db can not be opened: No such file"):
        open_engine(f"sqlite:///{tmp_path}/nowhere/runtime.db")


def test_a_password_is_never_shown() -> None:
    engine = open_engine("postgresql://someone:hunter2@127.0.0.1:1/nothing")
    with pytest.raises(StoreFailed) as caught:
        migrate(engine)
    assert "127.0.0.1" in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_postgres_without_its_driver_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(StoreUnusable, match=r"nightlab\[postgres\]"):
        open_engine("postgresql://localhost/x")


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_postgres_urls_get_the_driver_that_is_shipped(scheme: str) -> None:
    assert open_engine(f"{scheme}://localhost/x").url.drivername == "postgresql+psycopg"


def test_the_file_is_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "runtime.db"
    engine = open_engine(f"sqlite:///{path}")
    migrate(engine)
    with engine.connect() as connection:
        connection.execute(sa.text("SELECT 1"))
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    engine.dispose()
    assert modes == {"runtime.db": 0o600, "runtime.db-wal": 0o600, "runtime.db-shm": 0o600}


def test_sqlite_commits_are_on_disk_when_they_return(tmp_path: Path) -> None:
    engine = open_engine(f"sqlite:///{tmp_path / 'runtime.db'}")
    with engine.connect() as connection:
        settings = {name: connection.scalar(sa.text(f"PRAGMA {name}")) for name in ("journal_mode", "synchronous")}
    engine.dispose()
    assert settings == {"journal_mode": "wal", "synchronous": 2}
