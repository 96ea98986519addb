"""Jobs that go on from where an ended job of their experiment was: which they may name, and what is known of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import sqlalchemy as sa

from runtime.model.nouns import Job
from runtime.model.state import State
from runtime.store import history, usage
from runtime.store.history import JobRow
from runtime_client.doors.refusal import refused
from runtime_client.models import ErrorKind, JobSpec

MAX_CHAIN = 64
"""Jobs of a chain whose work is added up; what earlier ones did is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """A job that another one goes on from."""

    row: JobRow
    saved_s: float
    """Seconds of work that its newest checkpoint holds, with what the jobs before it did; as far as is known."""


def read_earlier(connection: sa.Connection, job_ids: Iterable[str]) -> dict[str, Earlier]:
    """Those of these jobs that there are."""
    rows = history.get_jobs(connection, sorted(set(job_ids)))
    return {job_id: Earlier(row=row, saved_s=_saved_s(connection, row)) for job_id, row in rows.items()}


def continued(job: Job, spec: JobSpec, earlier: Earlier | None, state: State) -> Job:
    """The job that goes on from an earlier one; one that does not is as it was.

    Raises:
        Refused: there is no such job, it has not ended, or it is of another experiment or project.
    """
    if spec.continues is None:
        return job
    name = spec.continues
    if earlier is None:
        message = f"continues: there is no job {name[:80]!r}; give that of an ended job, or leave it out"
        raise refused(ErrorKind.INVALID, "no_such_job", message, path="continues")
    row = earlier.row
    if (row.project, row.experiment) != (job.project, job.experiment):
        message = (
            f"continues: {name} is of experiment {row.experiment!r} in project {row.project!r}, this job of "
            f"{job.experiment!r} in {job.project!r}; a job goes on only from one of its own"
        )
        raise refused(ErrorKind.INVALID, "another_experiment", message, path="continues")
    if name in state.jobs or not row.state.is_ended:
        message = f"continues: {name} has not ended; wait for that, or cancel it (`nightlab job cancel {name}`)"
        raise refused(ErrorKind.CONFLICT, "not_ended", message, path="continues")
    return job.but(done_s=earlier.saved_s)


def _saved_s(connection: sa.Connection, row: JobRow) -> float:
    total_s, seen = 0.0, set[str]()
    here: JobRow | None = row
    while here is not None and here.job_id not in seen and len(seen) < MAX_CHAIN:
        seen.add(here.job_id)
        saved_at_s = usage.last_checkpoints(connection, [here.job_id])
        for attempt in history.get_attempts(connection, [here.job_id])[here.job_id]:
            at_s = saved_at_s.get((here.job_id, attempt.attempt))
            if at_s is not None and attempt.started_at is not None:
                total_s += max(0.0, at_s - attempt.started_at)
        before = here.spec.get("continues")
        here = None if before is None else history.get_job(connection, before)
    return total_s
