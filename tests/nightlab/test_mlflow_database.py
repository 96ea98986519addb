"""MLflow's database after a kill in its first start: put aside while nobody has used it, never afterwards."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from nightlab.services.mlflow_database import ASIDE, FILE, put_aside_if_unused


def make(folder: Path, *statements: str) -> None:
    with closing(sqlite3.connect(folder / FILE)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


EXPERIMENTS = ("CREATE TABLE experiments (name TEXT)", "INSERT INTO experiments VALUES ('Default')")
LEFTOVER = ("CREATE TABLE _alembic_tmp_endpoints (endpoint_id TEXT)",)


@pytest.mark.parametrize(
    "statements",
    [
        pytest.param((), id="nothing made yet"),
        pytest.param(LEFTOVER, id="in the middle of a migration"),
        pytest.param((*EXPERIMENTS, "CREATE TABLE runs (run_uuid TEXT)", *LEFTOVER), id="with the default experiment"),
    ],
)
def test_a_database_that_nobody_used_is_put_aside(statements: tuple[str, ...], tmp_path: Path) -> None:
    make(tmp_path, *statements)
    (tmp_path / f"{FILE}-wal").touch()
    assert put_aside_if_unused(tmp_path)
    assert not (tmp_path / FILE).exists()
    assert not (tmp_path / f"{FILE}-wal").exists()
    assert (tmp_path / ASIDE).exists()


@pytest.mark.parametrize(
    "statements",
    [
        pytest.param(("CREATE TABLE runs (run_uuid TEXT)", "INSERT INTO runs VALUES ('a')"), id="a run"),
        pytest.param((*EXPERIMENTS, "INSERT INTO experiments VALUES ('mine')"), id="an experiment"),
        pytest.param(
            ("CREATE TABLE registered_models (name TEXT)", "INSERT INTO registered_models VALUES ('m')"), id="a model"
        ),
    ],
)
def test_a_database_in_use_stays_even_with_leftovers(statements: tuple[str, ...], tmp_path: Path) -> None:
    make(tmp_path, *statements, *LEFTOVER)
    assert not put_aside_if_unused(tmp_path)
    assert (tmp_path / FILE).exists()


def test_a_second_one_replaces_the_first_that_was_put_aside(tmp_path: Path) -> None:
    for _ in range(2):
        make(tmp_path, *LEFTOVER)
        assert put_aside_if_unused(tmp_path)
    assert not (tmp_path / FILE).exists()


def test_what_is_no_database_is_left_to_mlflow(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"not a database, but long enough to be looked at" * 40)
    assert not put_aside_if_unused(tmp_path)
    assert (tmp_path / FILE).exists()


def test_no_database_is_nothing_to_do(tmp_path: Path) -> None:
    assert not put_aside_if_unused(tmp_path)
