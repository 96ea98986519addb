"""What a trial is worth and was measured under, whose idea it was, and what models have cost."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

BigId = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.add_column("sessions", sa.Column("tokens", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("sessions", sa.Column("cost_usd", sa.Double, nullable=False, server_default="0"))
    op.add_column("trials", sa.Column("hypothesis", sa.String(60)))
    op.add_column("trials", sa.Column("is_idle_work", sa.Boolean, nullable=False, server_default=sa.false()))
    op.add_column("trials", sa.Column("worth", sa.JSON(none_as_null=True)))
    op.add_column("trials", sa.Column("facts", sa.JSON, nullable=False, server_default=sa.text("'{}'")))
    op.create_table(
        "suggestions",
        sa.Column("suggestion_id", BigId, autoincrement=True, nullable=False),
        sa.Column("session_id", sa.String(100), nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("params", sa.JSON, nullable=False),
        sa.Column("why", sa.Text, nullable=False),
        sa.Column("suggested_by", sa.String(60), nullable=False),
        sa.Column("trial_id", sa.String(120)),
        sa.Column("note", sa.Text),
        sa.PrimaryKeyConstraint("suggestion_id", name="pk_suggestions"),
    )
    op.create_index("ix_suggestions_session_id", "suggestions", ["session_id"])
    op.create_table(
        "thoughts",
        sa.Column("thought_id", BigId, autoincrement=True, nullable=False),
        sa.Column("session_id", sa.String(100), nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("suggested_by", sa.String(60), nullable=False),
        sa.Column("configuration", sa.String(64), nullable=False),
        sa.Column("params", sa.JSON, nullable=False),
        sa.Column("seed", sa.BigInteger, nullable=False),
        sa.Column("why", sa.Text, nullable=False),
        sa.Column("hypothesis", sa.String(60)),
        sa.Column("premise", sa.String(64)),
        sa.Column("took_s", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("thought_id", name="pk_thoughts"),
    )
    op.create_index("ix_thoughts_session_id", "thoughts", ["session_id"])


def downgrade() -> None:
    op.drop_table("thoughts")
    op.drop_table("suggestions")
    for column in ("facts", "worth", "is_idle_work", "hypothesis"):
        op.drop_column("trials", column)
    for column in ("cost_usd", "tokens"):
        op.drop_column("sessions", column)
