"""A draft as one unit of work: journal, rows, runs, outbox, and now and then a snapshot."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from runtime.model.codec import encode_state
from runtime.model.state import State
from runtime.store import history, journal
from runtime.tracking import runs
from runtime.tracking.job_runs import NewJobRun, record_new_jobs
from runtime_client.models import JobSpec

from .draft import Draft


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotOrder:
    state: State
    """As it is after the draft; nobody changes it while the unit runs."""
    prune_before_s: float
    """Events older than this may go."""


def unit_of(
    draft: Draft,
    *,
    specs: Mapping[str, JobSpec],
    run_ids: Mapping[str, str],
    user: str | None,
    snapshot: SnapshotOrder | None,
) -> Callable[[sa.Connection], None]:
    """The function that writes all of a draft, or nothing.

    Args:
        specs: of the new jobs, by job id.
        run_ids: of the jobs whose run changes its status.
    """
    rows, events, at_s = draft.rows, draft.events, draft.at_s

    def unit(connection: sa.Connection) -> None:
        journal.append(connection, events)
        history.insert_jobs(connection, list(rows.new_jobs.values()))
        history.update_jobs(connection, rows.jobs)
        history.upsert_attempts(connection, list(rows.new_attempts.values()))
        for (job_id, attempt), changes in rows.attempts.items():
            history.update_attempt(connection, job_id, attempt, **changes)
        record_new_jobs(
            connection,
            [NewJobRun(run_id=row.run_id, job_id=row.job_id, spec=specs[row.job_id]) for row in rows.new_jobs.values()],
            now_s=at_s,
            user=user,
        )
        for job_id, status in rows.run_status.items():
            runs.record_status(connection, run_ids[job_id], status, rows.ended_at.get(job_id, at_s))
        if snapshot is not None:
            state = snapshot.state
            journal.write_snapshot(connection, seq=state.last_seq, at_s=at_s, payload=encode_state(state))
            journal.prune_events(connection, before_s=snapshot.prune_before_s)

    return unit
