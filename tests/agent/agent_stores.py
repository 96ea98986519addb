"""Stores of the agent on every database that it knows, each empty: import the fixtures that a test module needs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
import sqlalchemy as sa

from agent.store.store import AgentStore

POSTGRES_URL = "NIGHTLAB_TEST_POSTGRES_URL"


@pytest.fixture
def postgres_url() -> Iterator[str]:
    """A schema of its own in the PostgreSQL database that the environment names."""
    if POSTGRES_URL not in os.environ:
        pytest.skip(f"{POSTGRES_URL} is not set")
    schema = f"test_{uuid4().hex}"
    url = sa.make_url(os.environ[POSTGRES_URL])
    owner = sa.create_engine(url)
    with owner.begin() as connection:
        connection.execute(sa.schema.CreateSchema(schema))
    yield url.update_query_dict({"options": f"-csearch_path={schema}"}).render_as_string(hide_password=False)
    with owner.begin() as connection:
        connection.execute(sa.schema.DropSchema(schema, cascade=True))
    owner.dispose()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AgentStore]:
    url = None if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))
    opened = AgentStore.open(tmp_path, url=url)
    yield opened
    opened.close()
