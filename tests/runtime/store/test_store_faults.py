"""Full disks, locks, lost connections, kills and torn files."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from store_samples import event, events, job

from runtime.store import history, journal, records
from runtime.store.engine import open_engine
from runtime.store.migrate import migrate
from runtime.store.sql_writer import SqlWriter
from runtime.store.writer import StoreFailed, StoreFull, StoreUnusable

KIB = 1024


def write_until_full(store: SqlWriter, at_most: int) -> int:
    """Append events of 20 KiB until the store is full; the number of the last one that was acknowledged."""
    for seq in range(1, at_most):
        try:
            store.write_blocking(lambda c, seq=seq: journal.append(c, [event(seq, payload={"x": "x" * 20 * KIB})]))
        except StoreFull:
            return seq - 1
    raise AssertionError("never full")


@pytest.fixture
def file_store(migrated_file: Path, tmp_path: Path) -> Iterator[tuple[SqlWriter, sa.Engine]]:
    shutil.copy(migrated_file, tmp_path / "runtime.db")
    engine = open_engine(f"sqlite:///{tmp_path / 'runtime.db'}")
    with SqlWriter(engine) as store:
        yield store, engine
    engine.dispose()


def limit_pages(engine: sa.Engine, n_pages: int) -> None:
    with engine.connect() as connection:
        connection.exec_driver_sql(f"PRAGMA max_page_count={n_pages}")


def test_a_full_database_says_so_and_goes_on_when_there_is_space(file_store: tuple[SqlWriter, sa.Engine]) -> None:
    store, engine = file_store
    limit_pages(engine, 150)
    kept = write_until_full(store, 100)
    assert store.read_blocking(journal.last_seq) == kept
    limit_pages(engine, 1_000_000)
    store.write_blocking(lambda c: journal.append(c, [event(kept + 1)]))
    assert store.read_blocking(journal.last_seq) == kept + 1


def test_a_small_unit_in_a_full_batch_is_kept_or_told(file_store: tuple[SqlWriter, sa.Engine]) -> None:
    store, engine = file_store
    limit_pages(engine, 60)
    futures = [store.submit(lambda c, n=n: records.set_fact(c, f"k{n}", "x" * 8 * KIB)) for n in range(100)]
    failures = [future.exception(30) for future in futures]
    assert any(isinstance(failure, StoreFull) for failure in failures)
    for number, failure in enumerate(failures):
        found = store.read_blocking(lambda c, number=number: records.get_fact(c, f"k{number}"))
        assert (found is not None) == (failure is None)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    if os.getuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("a small file system can not be mounted here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)  # lazily: a failed test leaves files open


def test_a_full_disk_loses_nothing_that_was_acknowledged(small_disk: Path) -> None:
    url = f"sqlite:///{small_disk / 'runtime.db'}"
    engine = open_engine(url)
    migrate(engine)
    with SqlWriter(engine) as store:
        ballast = small_disk / "ballast"
        ballast.write_bytes(b"x" * 512 * KIB)
        kept = write_until_full(store, 1000)
        with pytest.raises(StoreFull):  # still full
            store.write_blocking(lambda c: journal.append(c, [event(kept + 1, payload={"x": "x" * 200 * KIB})]))
        assert store.read_blocking(journal.last_seq) == kept
        ballast.unlink()
        store.write_blocking(lambda c: journal.append(c, [event(kept + 1)]))
    engine.dispose()
    again = open_engine(url)
    with again.connect() as connection:
        assert journal.last_seq(connection) == kept + 1
        assert connection.scalar(sa.text("PRAGMA integrity_check")) == "ok"
    again.dispose()


def test_a_disk_full_from_the_start_is_named(small_disk: Path) -> None:
    engine = open_engine(f"sqlite:///{small_disk / 'runtime.db'}")
    with (small_disk / "ballast").open("wb", buffering=0) as ballast, contextlib.suppress(OSError):
        while ballast.write(b"x" * 64 * KIB):
            pass
    assert shutil.disk_usage(small_disk).free == 0
    with pytest.raises(StoreFull, match="free some space"):
        migrate(engine)
    engine.dispose()


def test_a_lock_of_another_process_is_named_and_passes(file_store: tuple[SqlWriter, sa.Engine]) -> None:
    store, engine = file_store
    with engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA busy_timeout=50")
    other = sqlite3.connect(str(engine.url.database), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreFailed, match=r"runtime\.db is locked .* one runtime may use a database"):
        store.write_blocking(lambda c: journal.append(c, [event(1)]))
    assert store.read_blocking(journal.last_seq) == 0  # readers do not mind
    other.execute("ROLLBACK")
    other.close()
    store.write_blocking(lambda c: journal.append(c, [event(1)]))
    assert store.read_blocking(journal.last_seq) == 1


@pytest.mark.parametrize(
    ("damage", "said"), [("UPDATE jobs SET spec = '{\"comm'", "JSON"), ("UPDATE jobs SET state = 'qu?ued'", "qu[?]ued")]
)
def test_a_damaged_value_is_told_as_damage(store: SqlWriter, damage: str, said: str) -> None:
    store.write_blocking(lambda c: history.insert_jobs(c, [job(1)]))
    store.write_blocking(lambda c: c.exec_driver_sql(damage))
    with pytest.raises(StoreUnusable, match=said):
        store.read_blocking(lambda c: history.get_job(c, "j1"))


@pytest.mark.postgres
def test_a_lost_connection_fails_its_units_and_the_next_ones_succeed(postgres_url: str) -> None:
    engine = open_engine(postgres_url)
    migrate(engine)

    def cut_the_branch(connection: sa.Connection) -> None:
        pid = connection.scalar(sa.text("SELECT pg_backend_pid()"))
        records.set_fact(connection, "lost", True)
        with open_engine(postgres_url).begin() as other:
            other.execute(sa.text("SELECT pg_terminate_backend(:pid)"), {"pid": pid})
        records.set_fact(connection, "more", True)

    with SqlWriter(engine) as store:
        with pytest.raises(StoreFailed):
            store.write_blocking(cut_the_branch)
        crowd = [store.submit(unit) for unit in (cut_the_branch, lambda c: records.set_fact(c, "beside", True))]
        assert isinstance(crowd[0].exception(10), StoreFailed)
        crowd[1].exception(10)
        store.write_blocking(lambda c: records.set_fact(c, "after", True))
        assert store.read_blocking(lambda c: records.get_fact(c, "lost")) is None
        assert store.read_blocking(lambda c: records.get_fact(c, "after")) is True
    engine.dispose()


KILLED_WRITER = """
import sys
from store_samples import event
from runtime.store import journal, records
from runtime.store.engine import open_engine
from runtime.store.sql_writer import SqlWriter

def unit(connection):
    seq = journal.last_seq(connection) + 1
    journal.append(connection, [event(seq), event(seq + 1)])
    return seq + 1

with SqlWriter(open_engine(sys.argv[1])) as store:
    while True:
        futures = [store.submit(unit) for _ in range(5)]
        for future in futures:
            print(future.result(), flush=True)
"""


def kill_while_writing(url: str, n_lines: int) -> int:
    """Run a writer, kill it -9 after some lines; the last event that it had acknowledged."""
    here = str(Path(__file__).parent)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([here, str(Path.cwd())])}
    process = subprocess.Popen([sys.executable, "-c", KILLED_WRITER, url], stdout=subprocess.PIPE, env=environment)
    assert process.stdout is not None
    for _ in range(n_lines):
        process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    said = process.stdout.read().split()
    process.wait(10)
    process.stdout.close()
    return int(said[-1]) if said else 0


def assert_whole(url: str, at_least: int) -> int:
    engine = open_engine(url)
    with engine.connect() as connection:
        found = [stored.seq for stored in journal.read_events(connection, since=0, limit=10**9)]
        if engine.dialect.name == "sqlite":
            assert connection.scalar(sa.text("PRAGMA integrity_check")) == "ok"
    engine.dispose()
    assert found == list(range(1, len(found) + 1))
    assert len(found) % 2 == 0, "half a unit was kept"
    assert len(found) >= at_least
    return len(found)


def test_acknowledged_events_survive_a_kill(engine: sa.Engine) -> None:
    url = engine.url.render_as_string(hide_password=False)
    acknowledged = kill_while_writing(url, 60)
    assert assert_whole(url, acknowledged) >= 2


@pytest.mark.kills
def test_acknowledged_events_survive_many_kills_in_a_row(engine: sa.Engine) -> None:
    url = engine.url.render_as_string(hide_password=False)
    for n_lines in range(1, 40, 3):
        assert_whole(url, kill_while_writing(url, n_lines))


@pytest.fixture
def torn(file_store: tuple[SqlWriter, sa.Engine], tmp_path: Path) -> tuple[bytes, bytes]:
    """A database and its WAL as a power cut would find them: 20 units of 3 events, none moved to the database yet."""
    store, _ = file_store
    for first in range(1, 60, 3):
        store.write_blocking(lambda c, first=first: journal.append(c, events(first, first + 2)))
    return (tmp_path / "runtime.db").read_bytes(), (tmp_path / "runtime.db-wal").read_bytes()


def events_after_power_cut(folder: Path, database: bytes, wal: bytes) -> int:
    folder.mkdir()
    (folder / "runtime.db").write_bytes(database)
    (folder / "runtime.db-wal").write_bytes(wal)
    engine = open_engine(f"sqlite:///{folder / 'runtime.db'}")
    migrate(engine)
    with SqlWriter(engine) as store:
        last = store.read_blocking(journal.last_seq)
        whole = store.read_blocking(lambda c: journal.read_events(c, since=0, limit=1000))
        assert [stored.seq for stored in whole] == list(range(1, last + 1))
        store.write_blocking(lambda c: journal.append(c, [event(last + 1)]))
        assert store.read_blocking(lambda c: c.scalar(sa.text("PRAGMA integrity_check"))) == "ok"
    engine.dispose()
    return last


def test_a_power_cut_keeps_whole_units_from_the_start(torn: tuple[bytes, bytes], tmp_path: Path) -> None:
    database, wal = torn
    cuts = sorted({*range(0, len(wal), len(wal) // 40 + 13), len(wal) - 1, len(wal)})
    kept = [events_after_power_cut(tmp_path / f"cut-{cut}", database, wal[:cut]) for cut in cuts]
    assert all(number % 3 == 0 for number in kept)
    assert kept == sorted(kept)
    assert kept[0] == 0
    assert kept[-2] < kept[-1] == 60


def test_a_torn_page_in_the_log_ends_it_there(torn: tuple[bytes, bytes], tmp_path: Path) -> None:
    database, wal = torn
    kept = []
    for place in range(40, len(wal), len(wal) // 10):
        damaged = wal[:place] + bytes([wal[place] ^ 0xFF]) + wal[place + 1 :]
        kept.append(events_after_power_cut(tmp_path / f"flip-{place}", database, damaged))
    assert all(number % 3 == 0 for number in kept)
    assert kept == sorted(kept)
    assert kept[-1] < 60
