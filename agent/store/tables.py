"""All tables of the agent, in SQLAlchemy Core. The same on SQLite and PostgreSQL; changed only by migrations."""

from __future__ import annotations

import sqlalchemy as sa

VERSION_TABLE = "agent_schema_version"
HEAD = "0008"
"""The newest migration; a test says that it is."""

metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(column_0_label)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)

BigId = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

sessions = sa.Table(
    "sessions",
    metadata,
    sa.Column("session_id", sa.String(100), primary_key=True),
    sa.Column("number", BigId, nullable=False, unique=True),
    sa.Column("key", sa.String(32), nullable=False),
    sa.Column("request_token", sa.String(128), unique=True),
    sa.Column("task_name", sa.String(100), nullable=False),
    sa.Column("task_json", sa.Text, nullable=False),
    sa.Column("state", sa.String(20), nullable=False, index=True),
    sa.Column("message", sa.Text, nullable=False, default=""),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("ended_at", sa.Double),
    sa.Column("fence", sa.BigInteger, nullable=False, default=0),
    sa.Column("pid", sa.Integer),
    sa.Column("pid_started_at", sa.Double),
    sa.Column("run_id", sa.String(64)),
    sa.Column("hypothesis_run_id", sa.String(64)),
    sa.Column("plan_revision", sa.Integer, nullable=False, default=0),
    sa.Column("n_trials", sa.Integer, nullable=False, default=0),
    sa.Column("next_number", sa.Integer, nullable=False, default=1),
    sa.Column("device_seconds", sa.Double, nullable=False, default=0.0),
    sa.Column("wall_seconds", sa.Double, nullable=False, default=0.0),
    sa.Column("tokens", sa.BigInteger, nullable=False, default=0),
    sa.Column("cost_usd", sa.Double, nullable=False, default=0.0),
    sa.Column("report_path", sa.Text),
    sa.Column("result", sa.JSON(none_as_null=True)),
    sa.Column("finish_by", sa.Double),
    sa.Column("night_id", sa.String(100), index=True),
)
"""`next_number` only grows, so that a withdrawn proposal's number is never given to another trial."""

trials = sa.Table(
    "trials",
    metadata,
    sa.Column("trial_id", sa.String(120), primary_key=True),
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
    sa.Column("device_seconds", sa.Double, nullable=False, default=0.0),
    sa.Column("proposed_at", sa.Double, nullable=False),
    sa.Column("launched_at", sa.Double),
    sa.Column("ended_at", sa.Double),
    sa.Column("submission", sa.Integer, nullable=False, default=1),
    sa.Column("is_submitting", sa.Boolean, nullable=False, default=False),
    sa.Column("is_recalled", sa.Boolean, nullable=False, default=False),
    sa.Column("hypothesis", sa.String(60)),
    sa.Column("is_idle_work", sa.Boolean, nullable=False, default=False),
    sa.Column("worth", sa.JSON(none_as_null=True)),
    sa.Column("facts", sa.JSON, nullable=False, default=dict),
    sa.UniqueConstraint("session_id", "number"),
)
"""A proposal is a trial in state `proposed`. Withdrawn proposals are deleted; nothing else ever is."""

plan_revisions = sa.Table(
    "plan_revisions",
    metadata,
    sa.Column("session_id", sa.String(100), primary_key=True),
    sa.Column("revision", sa.Integer, primary_key=True),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("phase", sa.String(20), nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("plan_json", sa.Text, nullable=False),
    sa.Column("is_published", sa.Boolean, nullable=False, default=False),
)
"""`is_published`: the artifact of the session's MLflow run was handed to the runtime."""

looks = sa.Table(
    "looks",
    metadata,
    sa.Column("session_id", sa.String(100), primary_key=True),
    sa.Column("look", sa.Integer, primary_key=True),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("metric", sa.String(250), nullable=False),
    sa.Column("configuration", sa.String(64), nullable=False),
    sa.Column("trial_id", sa.String(120), nullable=False, unique=True),
)
"""The ledger of held-out looks: a row is written before the job that looks is launched."""

suggestions = sa.Table(
    "suggestions",
    metadata,
    sa.Column("suggestion_id", BigId, primary_key=True, autoincrement=True),
    sa.Column("session_id", sa.String(100), nullable=False, index=True),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("params", sa.JSON, nullable=False),
    sa.Column("why", sa.Text, nullable=False),
    sa.Column("suggested_by", sa.String(60), nullable=False),
    sa.Column("trial_id", sa.String(120)),
    sa.Column("note", sa.Text),
    sa.Column("arm", sa.String(60)),
    sa.Column("expected", sa.JSON(none_as_null=True)),
    sa.Column("edit", sa.JSON(none_as_null=True)),
    sa.Column("promotion", sa.JSON(none_as_null=True)),
)
"""Ideas of people; `trial_id` or `note` is set by the session that took it up. With `arm`: of an outside agent, whose
ideas do not go first but are one more proposer of the portfolio, by this name."""

thoughts = sa.Table(
    "thoughts",
    metadata,
    sa.Column("thought_id", BigId, primary_key=True, autoincrement=True),
    sa.Column("session_id", sa.String(100), nullable=False, index=True),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("suggested_by", sa.String(60), nullable=False),
    sa.Column("configuration", sa.String(64), nullable=False),
    sa.Column("params", sa.JSON, nullable=False),
    sa.Column("seed", sa.BigInteger, nullable=False),
    sa.Column("why", sa.Text, nullable=False),
    sa.Column("hypothesis", sa.String(60)),
    sa.Column("premise", sa.String(64)),
    sa.Column("took_s", sa.Double, nullable=False),
    sa.Column("purpose", sa.String(20), nullable=False, default="search", server_default="search"),
    sa.Column("origin", sa.JSON(none_as_null=True)),
)
"""Proposals made ahead by a slow proposer. Whether one became a trial is told by the trials. `origin`: what of the
trial's facts is known already (prediction, prompt, model, brief)."""

model_calls = sa.Table(
    "model_calls",
    metadata,
    sa.Column("call_id", BigId, primary_key=True, autoincrement=True),
    sa.Column("session_id", sa.String(100), nullable=False, index=True),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("purpose", sa.String(60), nullable=False),
    sa.Column("prompt_version", sa.String(80)),
    sa.Column("model", sa.String(200), nullable=False),
    sa.Column("rung", sa.String(20)),
    sa.Column("outcome", sa.String(20), nullable=False),
    sa.Column("prompt_tokens", sa.BigInteger, nullable=False, default=0),
    sa.Column("completion_tokens", sa.BigInteger, nullable=False, default=0),
    sa.Column("cost_usd", sa.Double),
    sa.Column("took_s", sa.Double, nullable=False, default=0.0),
    sa.Column("note", sa.Text),
)
"""Every call of a model, those that failed too. `outcome`: `used`, `unusable`, a `Trouble`, or `open` while it lasts; a
cost of None: unknown. The sums over a session are its `tokens` and `cost_usd`, at every moment: a row is written with
what the call may use at most, and corrected. Request and reply are in the archive of the session, by its number."""

lessons = sa.Table(
    "lessons",
    metadata,
    sa.Column("session_id", sa.String(100), primary_key=True),
    sa.Column("lesson", sa.Integer, primary_key=True),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("evidence", sa.JSON, nullable=False),
    sa.Column("written_by", sa.String(60), nullable=False),
    sa.Column("dropped_at", sa.Double),
)
"""What a model has learned, a sentence each with ids of trials; so its context need not hold the whole session."""

gates = sa.Table(
    "gates",
    metadata,
    sa.Column("gate_id", BigId, primary_key=True, autoincrement=True),
    sa.Column("session_id", sa.String(100), nullable=False, index=True),
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
    sa.UniqueConstraint("session_id", "kind", "subject"),
)
"""Questions to people: may this be done? `subject`: the proposal that it is about, by what it is and not by its number;
asked once each. `trial`: the proposed trial as it was then, which is deleted when it is denied. `answer`: `approve`,
`deny`, `withdrawn`; `answered_by` is `deadline` where nobody did."""

steerings = sa.Table(
    "steerings",
    metadata,
    sa.Column("steering_id", BigId, primary_key=True, autoincrement=True),
    sa.Column("session_id", sa.String(100), nullable=False, index=True),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("said_by", sa.String(100), nullable=False),
    sa.Column("kind", sa.String(20), nullable=False),
    sa.Column("content", sa.JSON, nullable=False),
    sa.Column("taken_at", sa.Double),
)
"""What people said to a session under way; `task_json` of the session is changed in the same transaction. `taken_at`:
when the session went on by it, in the transaction of the revision of its plan that tells of it."""

tellings = sa.Table(
    "tellings",
    metadata,
    sa.Column("session_id", sa.String(100), primary_key=True),
    sa.Column("event", sa.String(100), primary_key=True),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("told_at", sa.Double),
    sa.Column("note", sa.Text),
)
"""Messages to people about a session, each event once: `ended-3`, `stalled-...`, `budget-trials-20`, `gate-7-...`.
Written before it is sent, `told_at` after it: what was not marked is told again."""

activity = sa.Table(
    "activity",
    metadata,
    sa.Column("id", BigId, primary_key=True, autoincrement=True),
    sa.Column("session_id", sa.String(100), nullable=False),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("step", sa.String(40), nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("trial_id", sa.String(120)),
    sa.Column("job_id", sa.String(64)),
    sa.Index("ix_activity_session", "session_id", "id"),
)

nights = sa.Table(
    "nights",
    metadata,
    sa.Column("night_id", sa.String(100), primary_key=True),
    sa.Column("sweep", sa.String(60), nullable=False),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("file", sa.Text, nullable=False),
    sa.Column("sweep_json", sa.Text, nullable=False),
    sa.Column("state", sa.String(20), nullable=False, index=True),
    sa.Column("outcome", sa.String(20)),
    sa.Column("stop_outcome", sa.String(20)),
    sa.Column("message", sa.Text, nullable=False, default=""),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("finish_by", sa.Double),
    sa.Column("ended_at", sa.Double),
    sa.Column("pid", sa.Integer),
    sa.Column("pid_started_at", sa.Double),
    sa.Column("fence", sa.BigInteger, nullable=False, default=0),
    sa.Column("report_html", sa.Text),
    sa.Column("report_markdown", sa.Text),
    sa.Column("summary", sa.JSON(none_as_null=True)),
    sa.Column("is_reference", sa.Boolean, nullable=False, default=False),
    sa.Column("stop_asked_at", sa.Double),
    sa.Column("n_endings", sa.Integer, nullable=False, default=0),
    sa.Column("settled_at", sa.Double),
    sa.UniqueConstraint("sweep", "number"),
)
"""One row for each start of a sweep, skipped ones included. `stop_outcome`: what it ends as once asked to stop.
`n_endings`: processes that have begun to end it, written before they do. `settled_at`: nothing is left to do for it,
its page is written and everybody told; while it is NULL, a process works on the night or will."""

night_cells = sa.Table(
    "night_cells",
    metadata,
    sa.Column("night_id", sa.String(100), primary_key=True),
    sa.Column("position", sa.Integer, primary_key=True),
    sa.Column("cell", sa.String(250), nullable=False),
    sa.Column("task_json", sa.Text, nullable=False),
    sa.Column("session_id", sa.String(100)),
    sa.Column("is_resumed", sa.Boolean, nullable=False, default=False),
)

chats = sa.Table(
    "chats",
    metadata,
    sa.Column("chat_id", sa.String(100), primary_key=True),
    sa.Column("number", BigId, nullable=False, unique=True),
    sa.Column("session_id", sa.String(100), index=True),
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("created_by", sa.String(100), nullable=False),
    sa.Column("updated_at", sa.Double, nullable=False),
    sa.Column("n_entries", sa.Integer, nullable=False, default=0),
)
"""Talks of people with nightlab, each about one session or about none."""

chat_entries = sa.Table(
    "chat_entries",
    metadata,
    sa.Column("chat_id", sa.String(100), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("kind", sa.String(20), nullable=False),
    sa.Column("said_by", sa.String(100), nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("ends_turn", sa.Boolean, nullable=False),
    sa.Column("content", sa.JSON, nullable=False),
    sa.Column("key", sa.String(100)),
    sa.Column("answers", sa.Integer),
    sa.UniqueConstraint("chat_id", "key", name="uq_chat_entries_key"),
    sa.UniqueConstraint("chat_id", "answers", name="uq_chat_entries_answers"),
)
"""The lines of chats, only ever added. `key`: a client's own name for what was said, so that it is said once.
`answers`: of an answer, the number of the entry that asked; the first one counts."""
