"""Attempts say how they were launched, and why so."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003_launch"
down_revision = "0002_beneficiaries"


def upgrade() -> None:
    op.add_column("attempts", sa.Column("launch", sa.String(10)))
    op.add_column("attempts", sa.Column("launch_why", sa.Text()))
