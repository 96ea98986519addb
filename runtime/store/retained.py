"""What decides about the files of jobs: their state, their session's verdict, pins. Functions of a connection."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from runtime.model.states import ENDED, ExitReason, JobState

from .tables import jobs, run_tags, runs

PINNED = "nightlab.pinned"
CONFIGURATION = "nightlab.configuration"
BEST = "nightlab.best_configuration"
DEFAULT = "nightlab.default_configuration"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFiles:
    """A job, as far as the keeping of its files depends on it."""

    job_id: str
    project: str
    session_id: str | None
    state: JobState
    ended_at_s: float | None
    is_pinned: bool
    exit_reason: ExitReason | None = None
    is_continued: bool = False
    """A live job goes on from it."""
    configuration: str | None
    """Which configuration of its session it tried; None: it is no trial."""
    winners: frozenset[str] | None
    """The configurations of its session that are kept: the best and the default. None: there is no verdict."""


def job_files(connection: sa.Connection) -> dict[str, JobFiles]:
    """All jobs there ever were, by id."""
    tags = _tags_of_jobs(connection)
    winners = _winners(connection)
    continued = _continued(connection)
    names = ("job_id", "project", "session_id", "state", "ended_at", "exit_reason")
    query = sa.select(*(jobs.c[name] for name in names))
    return {
        row.job_id: JobFiles(
            job_id=row.job_id,
            project=row.project,
            session_id=row.session_id,
            state=JobState(row.state),
            ended_at_s=row.ended_at,
            exit_reason=row.exit_reason,
            is_continued=row.job_id in continued,
            is_pinned=tags.get((row.job_id, PINNED)) == "true",
            configuration=tags.get((row.job_id, CONFIGURATION)),
            winners=winners.get(row.session_id),
        )
        for row in connection.execute(query)
    }


def _continued(connection: sa.Connection) -> frozenset[str]:
    """The jobs that live ones go on from."""
    query = sa.select(jobs.c.spec).where(jobs.c.state.not_in(ENDED))
    found = (row.spec.get("continues") for row in connection.execute(query))
    return frozenset(job_id for job_id in found if job_id is not None)


def _tags_of_jobs(connection: sa.Connection) -> dict[tuple[str, str], str]:
    query = (
        sa.select(runs.c.job_id, run_tags.c.key, run_tags.c.value)
        .join(run_tags, run_tags.c.run_id == runs.c.run_id)
        .where(runs.c.job_id.is_not(None), runs.c.attempt.is_(None), run_tags.c.key.in_((PINNED, CONFIGURATION)))
    )
    return {(row.job_id, row.key): row.value for row in connection.execute(query)}


def _winners(connection: sa.Connection) -> dict[str, frozenset[str]]:
    """By session, those with a verdict."""
    of_sessions = sa.select(run_tags.c.run_id).where(run_tags.c.key == "nightlab.kind", run_tags.c.value == "session")
    query = sa.select(run_tags.c.run_id, run_tags.c.key, run_tags.c.value).where(
        run_tags.c.run_id.in_(of_sessions), run_tags.c.key.in_(("nightlab.session", BEST, DEFAULT))
    )
    by_run: dict[str, dict[str, str]] = {}
    for row in connection.execute(query):
        by_run.setdefault(row.run_id, {})[row.key] = row.value
    return {
        tags["nightlab.session"]: frozenset({tags[BEST], tags[DEFAULT]})
        for tags in by_run.values()
        if {"nightlab.session", BEST, DEFAULT} <= tags.keys()
    }
