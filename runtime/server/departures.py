"""Attempts that were asked to leave, as the history knows them: why, for whom, and what it cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sqlalchemy as sa

from runtime.model.states import LEAVING, AttemptOutcome
from runtime.store import history, usage
from runtime.store.history import AttemptRow, JobRow
from runtime.store.usage import Key
from runtime_client.models import Departure


def read_departures(connection: sa.Connection, job_id: str) -> tuple[Departure, ...]:
    """The attempts of this job that were asked to leave, oldest first."""
    return _departures(connection, history.get_attempts(connection, [job_id])[job_id])


def read_cost_to_others(connection: sa.Connection, job_id: str) -> tuple[Departure, ...]:
    """The attempts that were asked to leave for this job, oldest first."""
    return _departures(connection, history.get_departures_for(connection, job_id))


def _departures(connection: sa.Connection, rows: Sequence[AttemptRow]) -> tuple[Departure, ...]:
    asked = [row for row in rows if row.stop_cause in LEAVING or row.beneficiary is not None]
    if not asked:
        return ()
    job_ids = sorted({row.job_id for row in asked})
    jobs = history.get_jobs(connection, job_ids)
    saved, reasons = usage.last_checkpoints(connection, job_ids), usage.stop_reasons(connection, job_ids)
    return tuple(_departure(row, jobs[row.job_id], saved, reasons) for row in asked)


def _departure(row: AttemptRow, job: JobRow, saved: Mapping[Key, float], reasons: Mapping[Key, str]) -> Departure:
    key = (row.job_id, row.attempt)
    assert row.stop_ordered_at is not None and row.stop_cause is not None, "it was asked"  # noqa: PT018
    return Departure(
        job_id=row.job_id,
        priority_class=job.priority_class,
        attempt=row.attempt,
        cause=row.stop_cause.value,
        beneficiary=row.beneficiary,
        reason=reasons.get(key),
        asked_at=row.stop_ordered_at,
        left_at=row.ended_at,
        outcome=None if row.outcome is None else row.outcome.value,
        lost_device_seconds=lost_device_seconds(row, saved.get(key)),
    )


def lost_device_seconds(row: AttemptRow, saved_at_s: float | None) -> float | None:
    """What an attempt did after its last checkpoint, times its devices.

    Args:
        saved_at_s: when that was; None: it made none, or nobody knows when.

    Returns:
        None while it is still there, or when it has a checkpoint of an unknown time.
    """
    if row.ended_at is None:
        return None
    if row.outcome is AttemptOutcome.SUCCEEDED or row.started_at is None:
        return 0.0
    if saved_at_s is None and row.checkpoint_step is not None:
        return None
    n_devices = sum(len(placement.devices) for placement in row.placements)
    return max(0.0, row.ended_at - (row.started_at if saved_at_s is None else saved_at_s)) * n_devices
