"""Jobs and their attempts, live and ended, as people and programs ask for them. Functions of a connection.

The scheduler's own state is rebuilt from the journal; these tables are written in the same units and never steer it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack

import sqlalchemy as sa

from runtime.model.nouns import Placement, SandboxReached
from runtime.model.states import AttemptOutcome, ExitReason, JobState, StopCause

from .rows import all_values, in_chunks, insert_or_replace, load, load_all
from .tables import attempts, jobs
from .writer import StoreRefused


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """One row of `jobs`. Times are seconds since the epoch; None: not yet, or not so."""

    job_id: str
    number: int
    """Submission sequence; `j7` has 7."""
    project: str
    experiment: str
    session_id: str | None
    priority_class: str
    priority: int
    is_preemptible: bool
    state: JobState
    state_reason: str | None = None
    exit_reason: ExitReason | None = None
    submitted_at: float
    started_at: float | None = None
    ended_at: float | None = None
    n_preemptions: int = 0
    n_retries: int = 0
    checkpoint_step: int | None = None
    run_id: str
    idempotency_token: str | None = None
    """Unique in the project."""
    spec: dict[str, Any]
    """The job's spec as JSON."""
    array_id: str | None = None
    """Set: it is a task of this array."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRow:
    """One row of `attempts`. Times are seconds since the epoch."""

    job_id: str
    attempt: int
    placements: tuple[Placement, ...]
    ordered_at: float
    started_at: float | None = None
    stop_ordered_at: float | None = None
    stop_cause: StopCause | None = None
    beneficiary: str | None = None
    ended_at: float | None = None
    outcome: AttemptOutcome | None = None
    exit_reason: ExitReason | None = None
    exit_code: int | None = None
    evidence: str | None = None
    checkpoint_step: int | None = None
    launch: str | None = None
    """`cold` or `warm`; None: not started."""
    launch_why: str | None = None
    sandbox: SandboxReached | None = None
    """None: not started, or by a release that had no sandbox."""
    run_s: float | None = None
    """From the start of the command until nothing of it was left, by its own machine; None: nobody knows."""
    cpu_s: float | None = None
    """Processor time of all its processes that have ended, in seconds of one core; None: nobody knows."""
    peak_memory_mb: float | None = None
    """Most memory that its processes held at once, in MiB; None: nobody knows, or it has not ended."""


class JobChanges(TypedDict, total=False):
    """The columns of a job that change in its life."""

    state: JobState
    state_reason: str | None
    exit_reason: ExitReason | None
    started_at: float | None
    ended_at: float | None
    n_preemptions: int
    n_retries: int
    checkpoint_step: int | None


class AttemptChanges(TypedDict, total=False):
    """The columns of an attempt that change in its life."""

    started_at: float | None
    stop_ordered_at: float | None
    stop_cause: StopCause | None
    beneficiary: str | None
    ended_at: float | None
    outcome: AttemptOutcome | None
    exit_reason: ExitReason | None
    exit_code: int | None
    evidence: str | None
    checkpoint_step: int | None
    launch: str | None
    launch_why: str | None
    sandbox: SandboxReached | None
    run_s: float | None
    cpu_s: float | None
    peak_memory_mb: float | None


def insert_jobs(connection: sa.Connection, rows: Sequence[JobRow]) -> None:
    """Add jobs; all or none. A number, id, or token in its project that exists already is refused at the unit's end."""
    if rows:
        connection.execute(sa.insert(jobs), all_values(rows))


def update_job(connection: sa.Connection, job_id: str, **changes: Unpack[JobChanges]) -> None:
    """Change one job.

    Raises:
        StoreRefused: no such job.
    """
    update_jobs(connection, {job_id: changes})


def update_jobs(connection: sa.Connection, changes_by_id: Mapping[str, JobChanges]) -> None:
    """Change many jobs, one statement for each set of changed columns.

    Raises:
        StoreRefused: no such job.
    """
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for job_id, changes in changes_by_id.items():
        if changes:
            groups.setdefault(tuple(sorted(changes)), []).append({"the_job": job_id, **changes})
    for names, rows in groups.items():
        update = sa.update(jobs).where(jobs.c.job_id == sa.bindparam("the_job"))
        done = connection.execute(update.values({name: sa.bindparam(name) for name in names}), rows)
        if done.rowcount not in (len(rows), -1):
            known = get_jobs(connection, [row["the_job"] for row in rows])
            missing = [row["the_job"] for row in rows if row["the_job"] not in known]
            raise StoreRefused(f"no such job: {', '.join(map(repr, missing))}")


def upsert_attempt(connection: sa.Connection, row: AttemptRow) -> None:
    """Write one attempt; one with the same number is replaced."""
    upsert_attempts(connection, [row])


def upsert_attempts(connection: sa.Connection, rows: Sequence[AttemptRow]) -> None:
    insert_or_replace(connection, attempts, all_values(rows))


def update_attempt(connection: sa.Connection, job_id: str, attempt: int, **changes: Unpack[AttemptChanges]) -> None:
    """Change one attempt.

    Raises:
        StoreRefused: no such attempt.
    """
    if not changes:
        return
    update = sa.update(attempts).where(attempts.c.job_id == job_id, attempts.c.attempt == attempt)
    if connection.execute(update.values(dict(changes))).rowcount != 1:
        raise StoreRefused(f"no such attempt: {job_id!r} number {attempt}")


def get_job(connection: sa.Connection, job_id: str) -> JobRow | None:
    row = connection.execute(sa.select(jobs).where(jobs.c.job_id == job_id)).one_or_none()
    return None if row is None else load(JobRow, row)


def get_jobs(connection: sa.Connection, job_ids: Iterable[str]) -> dict[str, JobRow]:
    """Jobs by id; unknown ids are left out."""
    found: dict[str, JobRow] = {}
    for chunk in in_chunks(job_ids):
        for row in connection.execute(sa.select(jobs).where(jobs.c.job_id.in_(chunk))):
            found[row.job_id] = load(JobRow, row)
    return found


def get_attempts(connection: sa.Connection, job_ids: Iterable[str]) -> dict[str, list[AttemptRow]]:
    """Attempts by job, in order of their number; a job without any has an empty list."""
    found: dict[str, list[AttemptRow]] = {}
    for chunk in in_chunks(job_ids):
        found.update((job_id, []) for job_id in chunk)
        query = sa.select(attempts).where(attempts.c.job_id.in_(chunk)).order_by(attempts.c.attempt)
        for row in connection.execute(query):
            found[row.job_id].append(load(AttemptRow, row))
    return found


def get_departures_for(connection: sa.Connection, beneficiary: str) -> list[AttemptRow]:
    """Attempts that were asked to leave for this job, in the order in which they were asked."""
    query = sa.select(attempts).where(attempts.c.beneficiary == beneficiary)
    return load_all(AttemptRow, connection.execute(query.order_by(attempts.c.stop_ordered_at, attempts.c.job_id)))


def list_jobs(
    connection: sa.Connection,
    *,
    states: Collection[JobState] | None = None,
    session_id: str | None = None,
    project: str | None = None,
    array_id: str | None = None,
    limit: int = 100,
    before_number: int | None = None,
) -> list[JobRow]:
    """Jobs, newest first; go on with `before_number` = the last one's number. `states` empty: none match."""
    query = sa.select(jobs).order_by(jobs.c.number.desc()).limit(limit)
    if states is not None:
        query = query.where(jobs.c.state.in_(list(states)))
    if session_id is not None:
        query = query.where(jobs.c.session_id == session_id)
    if project is not None:
        query = query.where(jobs.c.project == project)
    if array_id is not None:
        query = query.where(jobs.c.array_id == array_id)
    if before_number is not None:
        query = query.where(jobs.c.number < before_number)
    return load_all(JobRow, connection.execute(query))


def jobs_by_token(connection: sa.Connection, project: str, tokens: Iterable[str]) -> dict[str, JobRow]:
    """The jobs of a project that were submitted with these idempotency tokens."""
    found: dict[str, JobRow] = {}
    for chunk in in_chunks(tokens):
        query = sa.select(jobs).where(jobs.c.project == project, jobs.c.idempotency_token.in_(chunk))
        for row in connection.execute(query):
            found[row.idempotency_token] = load(JobRow, row)
    return found


def states_of(connection: sa.Connection, job_ids: Iterable[str]) -> dict[str, JobState]:
    """The states of jobs; unknown ids are left out."""
    found: dict[str, JobState] = {}
    for chunk in in_chunks(job_ids):
        for row in connection.execute(sa.select(jobs.c.job_id, jobs.c.state).where(jobs.c.job_id.in_(chunk))):
            found[row.job_id] = row.state
    return found


def tasks_of(connection: sa.Connection, array_ids: Iterable[str]) -> dict[str, dict[str, JobState]]:
    """The states of the tasks of arrays, by job; unknown arrays are left out."""
    found: dict[str, dict[str, JobState]] = {}
    for chunk in in_chunks(array_ids):
        query = sa.select(jobs.c.array_id, jobs.c.job_id, jobs.c.state).where(jobs.c.array_id.in_(chunk))
        for row in connection.execute(query.order_by(jobs.c.number)):
            found.setdefault(row.array_id, {})[row.job_id] = row.state
    return found


def next_number(connection: sa.Connection) -> int:
    """The number of the next job, from 1."""
    return int(connection.scalar(sa.select(sa.func.max(jobs.c.number))) or 0) + 1


def count_by_state(connection: sa.Connection) -> dict[JobState, int]:
    """How many jobs are in each state; states with none are left out."""
    rows = connection.execute(sa.select(jobs.c.state, sa.func.count()).group_by(jobs.c.state))
    return {state: count for state, count in rows}  # noqa: C416 - rows are not pairs to mypy
