"""The database of our own MLflow server. Standard library alone.

MLflow makes its tables in many steps that are not one transaction. Killed in the middle of its very first start, it
leaves a database with which no later start succeeds. Such a database holds nothing yet, so it is put aside.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

FILE = "mlflow.db"
ASIDE = "mlflow-unfinished.db"
PARTS = ("", "-journal", "-wal", "-shm")
"""What SQLite keeps beside a database."""
MAY_HOLD_WORK = ("runs", "registered_models", "trace_info", "logged_models")
DEFAULT_EXPERIMENTS = 1


def put_aside_if_unused(folder: Path) -> bool:
    """Move a database that nobody has used yet out of the way; MLflow must not be running. Whether it was moved.

    A sound one that was never used is made again by MLflow in its few seconds; one that can not be read is left to
    MLflow, which says what is wrong with it.
    """
    database = folder / FILE
    try:
        if not database.exists() or _is_used(database):
            return False
        for part in PARTS:
            found = folder / f"{FILE}{part}"
            if found.exists():
                found.replace(folder / f"{ASIDE}{part}")
    except (sqlite3.Error, OSError):
        return False
    return True


def _is_used(database: Path) -> bool:
    with closing(sqlite3.connect(database, timeout=1.0)) as connection:
        present = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        for table in MAY_HOLD_WORK:
            if table in present and _count(connection, table):
                return True
        return "experiments" in present and _count(connection, "experiments") > DEFAULT_EXPERIMENTS


def _count(connection: sqlite3.Connection, table: str) -> int:
    (n,) = connection.execute(f'SELECT count(*) FROM (SELECT 1 FROM "{table}" LIMIT 2)').fetchone()
    return int(n)
