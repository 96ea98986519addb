"""Chats of people with nightlab."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    big_id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "chats",
        sa.Column("chat_id", sa.String(100), nullable=False),
        sa.Column("number", big_id, nullable=False),
        sa.Column("session_id", sa.String(100)),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("created_by", sa.String(100), nullable=False),
        sa.Column("updated_at", sa.Double, nullable=False),
        sa.Column("n_entries", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("chat_id", name="pk_chats"),
        sa.UniqueConstraint("number", name="uq_chats_number"),
    )
    op.create_index("ix_chats_session_id", "chats", ["session_id"])
    op.create_table(
        "chat_entries",
        sa.Column("chat_id", sa.String(100), nullable=False),
        sa.Column("number", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("said_by", sa.String(100), nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("ends_turn", sa.Boolean, nullable=False),
        sa.Column("content", sa.JSON, nullable=False),
        sa.Column("key", sa.String(100)),
        sa.Column("answers", sa.Integer),
        sa.PrimaryKeyConstraint("chat_id", "number", name="pk_chat_entries"),
        sa.UniqueConstraint("chat_id", "key", name="uq_chat_entries_key"),
        sa.UniqueConstraint("chat_id", "answers", name="uq_chat_entries_answers"),
    )
