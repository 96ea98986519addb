"""Jobs can be found by the array that they are a task of."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004_arrays"
down_revision = "0003_launch"


def upgrade() -> None:
    op.add_column("jobs", sa.Column("array_id", sa.String(64)))
    op.create_index("ix_jobs_array_number", "jobs", ["array_id", "number"])
