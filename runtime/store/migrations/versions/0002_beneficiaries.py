"""Attempts can be found by the job that they left for."""

from __future__ import annotations

from alembic import op

revision = "0002_beneficiaries"
down_revision = "0001_first_tables"


def upgrade() -> None:
    op.create_index("ix_attempts_beneficiary", "attempts", ["beneficiary"])
