"""Attempts say how far they were shut off from their machine."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006_sandbox"
down_revision = "0005_memory"


def upgrade() -> None:
    op.add_column("attempts", sa.Column("sandbox", sa.Text()))
