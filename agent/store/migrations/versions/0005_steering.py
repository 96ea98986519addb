"""What people said to sessions under way."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    big_id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "steerings",
        sa.Column("steering_id", big_id, nullable=False, autoincrement=True),
        sa.Column("session_id", sa.String(100), nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("said_by", sa.String(100), nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("content", sa.JSON, nullable=False),
        sa.Column("taken_at", sa.Double),
        sa.PrimaryKeyConstraint("steering_id", name="pk_steerings"),
    )
    op.create_index("ix_steerings_session_id", "steerings", ["session_id"])
