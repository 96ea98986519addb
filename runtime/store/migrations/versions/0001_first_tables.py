"""The first tables: journal, history, MLflow records, outbox."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001_first_tables"
down_revision = None

BigId = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    _journal()
    _history()
    _runs()
    _metrics_and_outbox()


def _journal() -> None:
    op.create_table(
        "events",
        sa.Column("seq", BigId, autoincrement=False, nullable=False),
        sa.Column("type", sa.String(64), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("at_s", sa.Double(), nullable=False),
        sa.Column("actor", sa.String(200), nullable=False),
        sa.Column("on_behalf_of", sa.String(200)),
        sa.Column("project", sa.String(100)),
        sa.Column("job_id", sa.String(64)),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_events"),
    )
    op.create_index("ix_events_job_id", "events", ["job_id"])
    op.create_table(
        "snapshots",
        sa.Column("seq", BigId, autoincrement=False, nullable=False),
        sa.Column("at_s", sa.Double(), nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_snapshots"),
    )
    op.create_table(
        "facts",
        sa.Column("key", sa.String(100), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_facts"),
    )


def _history() -> None:
    op.create_table(
        "jobs",
        sa.Column("job_id", sa.String(64), nullable=False),
        sa.Column("number", BigId, nullable=False),
        sa.Column("project", sa.String(100), nullable=False),
        sa.Column("experiment", sa.String(100), nullable=False),
        sa.Column("session_id", sa.String(100)),
        sa.Column("priority_class", sa.String(100), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("is_preemptible", sa.Boolean(), nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("state_reason", sa.Text()),
        sa.Column("exit_reason", sa.String(40)),
        sa.Column("submitted_at", sa.Double(), nullable=False),
        sa.Column("started_at", sa.Double()),
        sa.Column("ended_at", sa.Double()),
        sa.Column("n_preemptions", sa.Integer(), nullable=False),
        sa.Column("n_retries", sa.Integer(), nullable=False),
        sa.Column("checkpoint_step", sa.BigInteger()),
        sa.Column("run_id", sa.String(64), nullable=False),
        sa.Column("idempotency_token", sa.String(128)),
        sa.Column("spec", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("job_id", name="pk_jobs"),
        sa.UniqueConstraint("number", name="uq_jobs_number"),
        sa.UniqueConstraint("project", "idempotency_token", name="uq_jobs_project"),
    )
    op.create_index("ix_jobs_run_id", "jobs", ["run_id"])
    op.create_index("ix_jobs_project_number", "jobs", ["project", "number"])
    op.create_index("ix_jobs_session_number", "jobs", ["session_id", "number"])
    op.create_index("ix_jobs_state_number", "jobs", ["state", "number"])
    op.create_table(
        "attempts",
        sa.Column("job_id", sa.String(64), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("placements", sa.Text(), nullable=False),
        sa.Column("ordered_at", sa.Double(), nullable=False),
        sa.Column("started_at", sa.Double()),
        sa.Column("stop_ordered_at", sa.Double()),
        sa.Column("stop_cause", sa.String(20)),
        sa.Column("beneficiary", sa.String(64)),
        sa.Column("ended_at", sa.Double()),
        sa.Column("outcome", sa.String(20)),
        sa.Column("exit_reason", sa.String(40)),
        sa.Column("exit_code", sa.Integer()),
        sa.Column("evidence", sa.Text()),
        sa.Column("checkpoint_step", sa.BigInteger()),
        sa.PrimaryKeyConstraint("job_id", "attempt", name="pk_attempts"),
    )
    op.create_index("ix_attempts_ordered_at", "attempts", ["ordered_at"])


def _runs() -> None:
    op.create_table(
        "runs",
        sa.Column("run_id", sa.String(64), nullable=False),
        sa.Column("job_id", sa.String(64)),
        sa.Column("attempt", sa.Integer()),
        sa.Column("parent_run_id", sa.String(64)),
        sa.Column("experiment_name", sa.String(250), nullable=False),
        sa.Column("run_name", sa.String(250), nullable=False),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("reported_status", sa.String(20)),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("ended_at", sa.Double()),
        sa.Column("idempotency_token", sa.String(200)),
        sa.Column("mlflow_run_id", sa.String(64)),
        sa.Column("mlflow_experiment_id", sa.String(64)),
        sa.PrimaryKeyConstraint("run_id", name="pk_runs"),
        sa.UniqueConstraint("idempotency_token", name="uq_runs_idempotency_token"),
    )
    for column in ("job_id", "parent_run_id", "mlflow_run_id"):
        op.create_index(f"ix_runs_{column}", "runs", [column])
    for table in ("run_params", "run_tags"):
        op.create_table(
            table,
            sa.Column("run_id", sa.String(64), nullable=False),
            sa.Column("key", sa.String(250), nullable=False),
            sa.Column("value", sa.Text(), nullable=False),
            sa.PrimaryKeyConstraint("run_id", "key", name=f"pk_{table}"),
        )


def _metrics_and_outbox() -> None:
    op.create_table(
        "metrics",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("run_id", sa.String(64), nullable=False),
        sa.Column("key", sa.String(250), nullable=False),
        sa.Column("value", sa.Double()),
        sa.Column("text", sa.String(10)),
        sa.Column("step", sa.BigInteger(), nullable=False),
        sa.Column("at_s", sa.Double(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_metrics"),
    )
    op.create_index("ix_metrics_run_key", "metrics", ["run_id", "key", "step"])
    op.create_table(
        "outbox",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("run_id", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.Column("n_tries", sa.Integer(), nullable=False),
        sa.Column("error", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_outbox"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_outbox_run_id", "outbox", ["run_id"])
