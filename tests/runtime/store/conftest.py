"""The backends of the contract: what takes `engine` or `store` runs on SQLite and, where one is given, PostgreSQL."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
import sqlalchemy as sa

from runtime.store.engine import open_engine
from runtime.store.migrate import migrate
from runtime.store.sql_writer import SqlWriter

POSTGRES_URL = "NIGHTLAB_TEST_POSTGRES_URL"


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated SQLite file to copy; migrating each time would cost more than the tests."""
    path = tmp_path_factory.mktemp("store") / "template.db"
    engine = open_engine(f"sqlite:///{path}")
    migrate(engine)
    engine.dispose()
    return path


@pytest.fixture
def postgres_url() -> Iterator[str]:
    """A schema of its own in the PostgreSQL database that the environment names."""
    if POSTGRES_URL not in os.environ:
        pytest.skip(f"{POSTGRES_URL} is not set")
    schema = f"test_{uuid4().hex}"
    url = sa.make_url(os.environ[POSTGRES_URL])
    owner = open_engine(url)
    with owner.begin() as connection:
        connection.execute(sa.schema.CreateSchema(schema))
    own = url.update_query_dict({"options": f"-csearch_path={schema}"})
    yield own.render_as_string(hide_password=False)
    with owner.begin() as connection:
        connection.execute(sa.schema.DropSchema(schema, cascade=True))
    owner.dispose()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def fresh_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'runtime.db'}"
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def engine(fresh_url: str, request: pytest.FixtureRequest) -> Iterator[sa.Engine]:
    """A migrated database."""
    engine = open_engine(fresh_url)
    if engine.dialect.name == "sqlite":
        shutil.copy(request.getfixturevalue("migrated_file"), str(engine.url.database))
    else:
        migrate(engine)
    yield engine
    engine.dispose()


@pytest.fixture
def store(engine: sa.Engine) -> Iterator[SqlWriter]:
    with SqlWriter(engine) as store:
        yield store
