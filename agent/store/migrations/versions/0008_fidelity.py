"""Wishes of people to see a configuration on a rung of the ladder."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("suggestions", sa.Column("promotion", sa.JSON(none_as_null=True)))


def downgrade() -> None:
    op.drop_column("suggestions", "promotion")
