"""The first tables: sessions, trials, plan revisions, held-out looks, activity."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

BigId = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "activity",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("session_id", sa.String(100), nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("step", sa.String(40), nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("trial_id", sa.String(120)),
        sa.Column("job_id", sa.String(64)),
        sa.PrimaryKeyConstraint("id", name="pk_activity"),
    )
    op.create_index("ix_activity_session", "activity", ["session_id", "id"])
    op.create_table(
        "looks",
        sa.Column("session_id", sa.String(100), nullable=False),
        sa.Column("look", sa.Integer, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("metric", sa.String(250), nullable=False),
        sa.Column("configuration", sa.String(64), nullable=False),
        sa.Column("trial_id", sa.String(120), nullable=False),
        sa.PrimaryKeyConstraint("session_id", "look", name="pk_looks"),
        sa.UniqueConstraint("trial_id", name="uq_looks_trial_id"),
    )
    op.create_table(
        "plan_revisions",
        sa.Column("session_id", sa.String(100), nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("phase", sa.String(20), nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("plan_json", sa.Text, nullable=False),
        sa.Column("is_published", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("session_id", "revision", name="pk_plan_revisions"),
    )
    op.create_table(
        "sessions",
        sa.Column("session_id", sa.String(100), nullable=False),
        sa.Column("number", BigId, nullable=False),
        sa.Column("key", sa.String(32), nullable=False),
        sa.Column("request_token", sa.String(128)),
        sa.Column("task_name", sa.String(100), nullable=False),
        sa.Column("task_json", sa.Text, nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("ended_at", sa.Double),
        sa.Column("fence", sa.BigInteger, nullable=False),
        sa.Column("pid", sa.Integer),
        sa.Column("pid_started_at", sa.Double),
        sa.Column("run_id", sa.String(64)),
        sa.Column("hypothesis_run_id", sa.String(64)),
        sa.Column("plan_revision", sa.Integer, nullable=False),
        sa.Column("n_trials", sa.Integer, nullable=False),
        sa.Column("next_number", sa.Integer, nullable=False),
        sa.Column("device_seconds", sa.Double, nullable=False),
        sa.Column("wall_seconds", sa.Double, nullable=False),
        sa.Column("report_path", sa.Text),
        sa.Column("result", sa.JSON(none_as_null=True)),
        sa.PrimaryKeyConstraint("session_id", name="pk_sessions"),
        sa.UniqueConstraint("number", name="uq_sessions_number"),
        sa.UniqueConstraint("request_token", name="uq_sessions_request_token"),
    )
    op.create_index("ix_sessions_state", "sessions", ["state"])
    op.create_table(
        "trials",
        sa.Column("trial_id", sa.String(120), nullable=False),
        sa.Column("session_id", sa.String(100), nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("configuration", sa.String(64), nullable=False),
        sa.Column("params", sa.JSON, nullable=False),
        sa.Column("seed", sa.BigInteger, nullable=False),
        sa.Column("purpose", sa.String(20), nullable=False),
        sa.Column("suggested_by", sa.String(60), nullable=False),
        sa.Column("why", sa.Text, nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("job_id", sa.String(64)),
        sa.Column("value", sa.Double),
        sa.Column("note", sa.Text),
        sa.Column("exit_reason", sa.String(40)),
        sa.Column("device_seconds", sa.Double, nullable=False),
        sa.Column("proposed_at", sa.Double, nullable=False),
        sa.Column("launched_at", sa.Double),
        sa.Column("ended_at", sa.Double),
        sa.Column("submission", sa.Integer, nullable=False),
        sa.Column("is_submitting", sa.Boolean, nullable=False),
        sa.Column("is_recalled", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("trial_id", name="pk_trials"),
        sa.UniqueConstraint("session_id", "number", name="uq_trials_session_id"),
    )


def downgrade() -> None:
    for table in ("activity", "looks", "plan_revisions", "trials", "sessions"):
        op.drop_table(table)
