"""All tables of the runtime, in SQLAlchemy Core. The same on SQLite and PostgreSQL; changed only by migrations."""

from __future__ import annotations

import sqlalchemy as sa

from runtime.model.states import AttemptOutcome, ExitReason, JobState, StopCause

from .columns import Json, Name, Placements, Prose, Reached, Whole, Word

metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(column_0_label)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)

BigId = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

events = sa.Table(
    "events",
    metadata,
    sa.Column("seq", BigId, primary_key=True, autoincrement=False),
    sa.Column("type", Name(64), nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("at_s", sa.Double, nullable=False),
    sa.Column("actor", Name(200), nullable=False),
    sa.Column("on_behalf_of", Name(200)),
    sa.Column("project", Name(100)),
    sa.Column("job_id", Name(64), index=True),
    sa.Column("payload", Json, nullable=False),
)

snapshots = sa.Table(
    "snapshots",
    metadata,
    sa.Column("seq", BigId, primary_key=True, autoincrement=False),
    sa.Column("at_s", sa.Double, nullable=False),
    sa.Column("payload", Json, nullable=False),
)

jobs = sa.Table(
    "jobs",
    metadata,
    sa.Column("job_id", Name(64), primary_key=True),
    sa.Column("number", BigId, nullable=False, unique=True),
    sa.Column("project", Name(100), nullable=False),
    sa.Column("experiment", Name(100), nullable=False),
    sa.Column("session_id", Name(100)),
    sa.Column("priority_class", Name(100), nullable=False),
    sa.Column("priority", sa.Integer, nullable=False),
    sa.Column("is_preemptible", sa.Boolean, nullable=False),
    sa.Column("state", Word(JobState, 20), nullable=False),
    sa.Column("state_reason", Prose),
    sa.Column("exit_reason", Word(ExitReason, 40)),
    sa.Column("submitted_at", sa.Double, nullable=False),
    sa.Column("started_at", sa.Double),
    sa.Column("ended_at", sa.Double),
    sa.Column("n_preemptions", sa.Integer, nullable=False, default=0),
    sa.Column("n_retries", sa.Integer, nullable=False, default=0),
    sa.Column("checkpoint_step", Whole),
    sa.Column("run_id", Name(64), nullable=False, index=True),
    sa.Column("idempotency_token", Name(128)),
    sa.Column("spec", Json, nullable=False),
    sa.Column("array_id", Name(64)),
    sa.Index("ix_jobs_array_number", "array_id", "number"),
    sa.UniqueConstraint("project", "idempotency_token"),
    sa.Index("ix_jobs_project_number", "project", "number"),  # lists go by number, newest first
    sa.Index("ix_jobs_session_number", "session_id", "number"),
    sa.Index("ix_jobs_state_number", "state", "number"),
)

attempts = sa.Table(
    "attempts",
    metadata,
    sa.Column("job_id", Name(64), primary_key=True),
    sa.Column("attempt", sa.Integer, primary_key=True),
    sa.Column("placements", Placements, nullable=False),
    sa.Column("ordered_at", sa.Double, nullable=False, index=True),
    sa.Column("started_at", sa.Double),
    sa.Column("stop_ordered_at", sa.Double),
    sa.Column("stop_cause", Word(StopCause, 20)),
    sa.Column("beneficiary", Name(64), index=True),
    sa.Column("ended_at", sa.Double),
    sa.Column("outcome", Word(AttemptOutcome, 20)),
    sa.Column("exit_reason", Word(ExitReason, 40)),
    sa.Column("exit_code", sa.Integer),
    sa.Column("evidence", Prose),
    sa.Column("checkpoint_step", Whole),
    sa.Column("launch", Name(10)),
    sa.Column("launch_why", Prose),
    sa.Column("peak_memory_mb", sa.Double),
    sa.Column("sandbox", Reached),
    sa.Column("run_s", sa.Double),
    sa.Column("cpu_s", sa.Double),
)

runs = sa.Table(
    "runs",
    metadata,
    sa.Column("run_id", Name(64), primary_key=True),
    sa.Column("job_id", Name(64), index=True),
    sa.Column("attempt", sa.Integer),
    sa.Column("parent_run_id", Name(64), index=True),
    sa.Column("experiment_name", Name(250), nullable=False),
    sa.Column("run_name", Name(250), nullable=False),
    sa.Column("status", Name(20), nullable=False),
    sa.Column("reported_status", Name(20)),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("ended_at", sa.Double),
    sa.Column("idempotency_token", Name(200), unique=True),
    sa.Column("mlflow_run_id", Name(64), index=True),
    sa.Column("mlflow_experiment_id", Name(64)),
)
"""MLflow runs as the gateway keeps them. A job's own run has `job_id` and no `attempt`; further runs that a script
makes have both. `status` is the server's word; `reported_status` is what the job's process said of itself."""

run_params = sa.Table(
    "run_params",
    metadata,
    sa.Column("run_id", Name(64), primary_key=True),
    sa.Column("key", Name(250), primary_key=True),
    sa.Column("value", Prose, nullable=False),
)

run_tags = sa.Table(
    "run_tags",
    metadata,
    sa.Column("run_id", Name(64), primary_key=True),
    sa.Column("key", Name(250), primary_key=True),
    sa.Column("value", Prose, nullable=False),
)

metrics = sa.Table(
    "metrics",
    metadata,
    sa.Column("id", BigId, primary_key=True, autoincrement=True),
    sa.Column("run_id", Name(64), nullable=False),
    sa.Column("key", Name(250), nullable=False),
    sa.Column("value", sa.Double),
    sa.Column("text", Name(10)),
    sa.Column("step", Whole, nullable=False),
    sa.Column("at_s", sa.Double, nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Index("ix_metrics_run_key", "run_id", "key", "step"),
)
"""`value` is NULL for NaN and infinities; `text` then holds `NaN`, `Infinity` or `-Infinity`."""

outbox = sa.Table(
    "outbox",
    metadata,
    sa.Column("id", BigId, primary_key=True, autoincrement=True),
    sa.Column("run_id", Name(64), nullable=False, index=True),
    sa.Column("kind", Name(20), nullable=False),
    sa.Column("payload", Json, nullable=False),
    sa.Column("n_tries", sa.Integer, nullable=False, default=0),
    sa.Column("error", Prose),
    sqlite_autoincrement=True,  # an id is never used twice, also after the table was empty
)
"""What MLflow has not been told yet, in order. Rows go when MLflow has confirmed them."""

facts = sa.Table(
    "facts",
    metadata,
    sa.Column("key", Name(100), primary_key=True),
    sa.Column("value", Json, nullable=False),
)
"""Small things the installation must remember (the secret for attempt tokens is in a file, not here)."""
