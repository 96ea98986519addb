"""Bring a database to the schema that this code knows. The scripts are in `migrations/versions`, one a version."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc

from .faults import translated
from .tables import metadata
from .writer import StoreUnusable

HEAD = "0007_run_time"
"""The newest version; the name of its script, which is also its Alembic revision."""
VERSION_TABLE = "runtime_schema_version"
_SCRIPTS = Path(__file__).parent / "migrations"
_LOCK = 7_070_001
"""Advisory lock on PostgreSQL, so that two starting servers do not migrate together."""


def migrate(engine: sa.Engine) -> None:
    """Make the tables, or bring older ones up to date; all of it or nothing. A database at head is left alone.

    Raises:
        StoreUnusable: a newer schema than this code knows, another program's tables, or a damaged file.
        StoreFailed: the database can not be reached or is locked.
    """
    try:
        with engine.begin() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
            version = _current_version(connection, engine.url)
            if version != HEAD:
                _upgrade(connection)
    except exc.SQLAlchemyError as error:
        raise translated(error, engine.url) from error


def _current_version(connection: sa.Connection, url: sa.URL) -> str | None:
    where = url.render_as_string(hide_password=True)
    names = set(sa.inspect(connection).get_table_names())
    if VERSION_TABLE not in names:
        if foreign := sorted(names & set(metadata.tables)):
            raise StoreUnusable(
                f"{where} has tables {', '.join(map(repr, foreign))} that another program made: "
                "give the runtime a database of its own"
            )
        return None
    version = connection.scalar(sa.text(f"SELECT version_num FROM {VERSION_TABLE}"))
    if version is not None and version not in known_versions():
        raise StoreUnusable(
            f"{where} has schema version {version!r}, newer than {HEAD!r}, the newest that this installation knows: "
            "upgrade nightlab, or put back the copy of the database from before the upgrade"
        )
    return None if version is None else str(version)


def known_versions() -> frozenset[str]:
    """The versions this code can start from."""
    return frozenset(path.stem for path in (_SCRIPTS / "versions").glob("[0-9]*.py"))


def _upgrade(connection: sa.Connection) -> None:
    from alembic.config import Config  # slow to import, and seldom needed
    from alembic.runtime.environment import EnvironmentContext
    from alembic.script import ScriptDirectory

    scripts = ScriptDirectory(str(_SCRIPTS))

    def steps(current: Any, _context: Any) -> Any:
        return scripts._upgrade_revs(HEAD, current)

    with EnvironmentContext(Config(), scripts, fn=steps, destination_rev=HEAD) as environment:
        environment.configure(connection=connection, version_table=VERSION_TABLE)
        environment.run_migrations()
