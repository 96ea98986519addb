"""Nights of sweeps and their cells; sessions with an hour by which they have to be over."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("sessions", sa.Column("finish_by", sa.Double))
    op.add_column("sessions", sa.Column("night_id", sa.String(100)))
    op.create_index("ix_sessions_night_id", "sessions", ["night_id"])
    op.create_table(
        "nights",
        sa.Column("night_id", sa.String(100), nullable=False),
        sa.Column("sweep", sa.String(60), nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("file", sa.Text, nullable=False),
        sa.Column("sweep_json", sa.Text, nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("outcome", sa.String(20)),
        sa.Column("stop_outcome", sa.String(20)),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("finish_by", sa.Double),
        sa.Column("ended_at", sa.Double),
        sa.Column("pid", sa.Integer),
        sa.Column("pid_started_at", sa.Double),
        sa.Column("fence", sa.BigInteger, nullable=False),
        sa.Column("report_html", sa.Text),
        sa.Column("report_markdown", sa.Text),
        sa.Column("summary", sa.JSON(none_as_null=True)),
        sa.Column("is_reference", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("night_id", name="pk_nights"),
        sa.UniqueConstraint("sweep", "number", name="uq_nights_sweep"),
    )
    op.create_index("ix_nights_state", "nights", ["state"])
    op.create_table(
        "night_cells",
        sa.Column("night_id", sa.String(100), nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("cell", sa.String(250), nullable=False),
        sa.Column("task_json", sa.Text, nullable=False),
        sa.Column("session_id", sa.String(100)),
        sa.Column("is_resumed", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("night_id", "position", name="pk_night_cells"),
    )


def downgrade() -> None:
    op.drop_table("night_cells")
    op.drop_table("nights")
    op.drop_index("ix_sessions_night_id", "sessions")
    for column in ("night_id", "finish_by"):
        op.drop_column("sessions", column)
