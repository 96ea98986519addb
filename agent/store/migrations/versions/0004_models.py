"""Language models: calls, lessons, what comes from where; questions to people; messages about sessions.

Nights: when a stop was asked for, and what is left to do after the end. Those that have ended are settled.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    big_id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.add_column("suggestions", sa.Column("arm", sa.String(60)))
    op.add_column("suggestions", sa.Column("expected", sa.JSON(none_as_null=True)))
    op.add_column("thoughts", sa.Column("purpose", sa.String(20), nullable=False, server_default="search"))
    op.add_column("thoughts", sa.Column("origin", sa.JSON(none_as_null=True)))
    op.create_table(
        "model_calls",
        sa.Column("call_id", big_id, nullable=False, autoincrement=True),
        sa.Column("session_id", sa.String(100), nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("purpose", sa.String(60), nullable=False),
        sa.Column("prompt_version", sa.String(80)),
        sa.Column("model", sa.String(200), nullable=False),
        sa.Column("rung", sa.String(20)),
        sa.Column("outcome", sa.String(20), nullable=False),
        sa.Column("prompt_tokens", sa.BigInteger, nullable=False),
        sa.Column("completion_tokens", sa.BigInteger, nullable=False),
        sa.Column("cost_usd", sa.Double),
        sa.Column("took_s", sa.Double, nullable=False),
        sa.Column("note", sa.Text),
        sa.PrimaryKeyConstraint("call_id", name="pk_model_calls"),
    )
    op.create_index("ix_model_calls_session_id", "model_calls", ["session_id"])
    op.create_table(
        "lessons",
        sa.Column("session_id", sa.String(100), nullable=False),
        sa.Column("lesson", sa.Integer, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("evidence", sa.JSON, nullable=False),
        sa.Column("written_by", sa.String(60), nullable=False),
        sa.Column("dropped_at", sa.Double),
        sa.PrimaryKeyConstraint("session_id", "lesson", name="pk_lessons"),
    )
    op.create_table(
        "gates",
        sa.Column("gate_id", big_id, nullable=False, autoincrement=True),
        sa.Column("session_id", sa.String(100), nullable=False),
        sa.Column("subject", sa.String(200), nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("trial", sa.JSON(none_as_null=True)),
        sa.Column("cost_device_s", sa.Double),
        sa.Column("asked_at", sa.Double, nullable=False),
        sa.Column("answer_by", sa.Double, nullable=False),
        sa.Column("unanswered", sa.String(20), nullable=False),
        sa.Column("answer", sa.String(20)),
        sa.Column("answered_by", sa.String(100)),
        sa.Column("answered_at", sa.Double),
        sa.Column("note", sa.Text),
        sa.UniqueConstraint("session_id", "kind", "subject", name="uq_gates_session_id"),
        sa.PrimaryKeyConstraint("gate_id", name="pk_gates"),
    )
    op.create_index("ix_gates_session_id", "gates", ["session_id"])
    op.create_table(
        "tellings",
        sa.Column("session_id", sa.String(100), nullable=False),
        sa.Column("event", sa.String(100), nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("told_at", sa.Double),
        sa.Column("note", sa.Text),
        sa.PrimaryKeyConstraint("session_id", "event", name="pk_tellings"),
    )
    op.add_column("nights", sa.Column("stop_asked_at", sa.Double))
    op.add_column("nights", sa.Column("n_endings", sa.Integer, nullable=False, server_default="0"))
    op.add_column("nights", sa.Column("settled_at", sa.Double))
    op.execute("UPDATE nights SET settled_at = ended_at")
    op.execute("UPDATE nights SET stop_asked_at = created_at WHERE stop_outcome IS NOT NULL")
