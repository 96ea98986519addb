"""Attempts say how long they ran, by the machine that they ran on, and what processor time they used."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007_run_time"
down_revision = "0006_sandbox"


def upgrade() -> None:
    op.add_column("attempts", sa.Column("run_s", sa.Double()))
    op.add_column("attempts", sa.Column("cpu_s", sa.Double()))
