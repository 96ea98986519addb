"""Alembic's entry: runs the migrations on the connection that `agent.store.schema` hands over."""

from __future__ import annotations

from alembic import context

from agent.store.tables import VERSION_TABLE, metadata

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata, version_table=VERSION_TABLE, render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()
