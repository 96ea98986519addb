"""Attempts say how much memory they held at most."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005_memory"
down_revision = "0004_arrays"


def upgrade() -> None:
    op.add_column("attempts", sa.Column("peak_memory_mb", sa.Double()))
