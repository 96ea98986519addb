"""Runs of jobs made many at once are the same as runs made one by one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import sqlalchemy as sa

from runtime.store.engine import open_engine
from runtime.store.migrate import migrate
from runtime.store.tables import facts, outbox, run_params, run_tags, runs
from runtime.tracking.job_runs import NewJobRun, record_new_jobs
from runtime.tracking.runs import record_new_job
from runtime_client.models import JobSpec

SPECS = [
    JobSpec(experiment_name="a", command="true", parameters={"lr": 0.1, "nested": {"x": [1, 2]}}, seed=3),
    JobSpec(experiment_name="a", command=("python", "a b.py"), mlflow_run_name="named", tags={"odd!": "v"}),
    JobSpec(experiment_name="b", command="true", mlflow_parent_run_id="p" * 32, project="q"),
    JobSpec(experiment_name="b", command="true", parameters={f"p{n}": n for n in range(250)}),
    JobSpec.model_validate({"experiment_name": "b", "command": "true", "session": {"session_id": "s1", "fence": 1}}),
]


def rows_after(path: Path, write: Callable[[sa.Connection], None]) -> list[list[tuple[object, ...]]]:
    engine = open_engine(f"sqlite:///{path}")
    migrate(engine)
    with engine.begin() as connection:
        write(connection)
        found = [
            [tuple(row) for row in connection.execute(sa.select(table).order_by(*table.primary_key))]
            for table in (runs, run_tags, run_params, outbox, facts)
        ]
    engine.dispose()
    return found


def test_runs_made_at_once_equal_runs_made_one_by_one(tmp_path: Path) -> None:
    def one_by_one(connection: sa.Connection) -> None:
        for n, spec in enumerate(SPECS):
            record_new_job(connection, run_id=f"r{n}", job_id=f"j{n}", spec=spec, now_s=5.0, user="me")

    def at_once(connection: sa.Connection) -> None:
        jobs = [NewJobRun(run_id=f"r{n}", job_id=f"j{n}", spec=spec) for n, spec in enumerate(SPECS)]
        record_new_jobs(connection, jobs, now_s=5.0, user="me")

    assert rows_after(tmp_path / "b.db", at_once) == rows_after(tmp_path / "a.db", one_by_one)
