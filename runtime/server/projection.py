"""From events to rows: what each event changes in the tables of jobs and attempts. Pure.

Rows are derived from events alone; nothing is decided here. Changes of one transaction are gathered first, so that
a job that is submitted and started in one round is written once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from runtime.model.dependencies import describe
from runtime.model.events import (
    AgentsAllowed,
    AgentsStopped,
    AttemptEnded,
    AttemptStarted,
    BudgetLifted,
    BudgetSet,
    CheckpointSeen,
    DevicesBusySeen,
    DevicesReserved,
    DevicesUnreserved,
    HoldLifted,
    HoldPlaced,
    JobEnded,
    JobSubmitted,
    NodeJoined,
    NodeLeft,
    NodeStateSet,
    Recorded,
    SessionFenced,
    StartOrdered,
    StopOrdered,
    Then,
)
from runtime.model.nouns import Job
from runtime.model.states import AttemptOutcome, ExitReason, JobState, StopCause
from runtime.store.history import AttemptChanges, AttemptRow, JobChanges, JobRow

RUN_STATUS_BY_STATE = {
    JobState.QUEUED: "SCHEDULED",
    JobState.STARTING: "SCHEDULED",
    JobState.RUNNING: "RUNNING",
    JobState.STOPPING: "RUNNING",
    JobState.SUCCEEDED: "FINISHED",
    JobState.FAILED: "FAILED",
    JobState.CANCELLED: "KILLED",
}
"""MLflow's word for where a job is."""

Key = tuple[str, int]
"""Job and attempt."""


@dataclass(slots=True)
class RowChanges:
    """The row changes of one transaction, gathered event by event."""

    new_jobs: dict[str, JobRow] = field(default_factory=dict)
    jobs: dict[str, JobChanges] = field(default_factory=dict)
    new_attempts: dict[Key, AttemptRow] = field(default_factory=dict)
    attempts: dict[Key, AttemptChanges] = field(default_factory=dict)
    run_status: dict[str, str] = field(default_factory=dict)
    """By job: the status that its run has from now on."""
    ended_at: dict[str, float] = field(default_factory=dict)
    """Jobs that ended, and when."""

    def add_job(self, row: JobRow) -> None:
        self.new_jobs[row.job_id] = row

    def change_job(self, job_id: str, changes: JobChanges) -> None:
        row = self.new_jobs.get(job_id)
        if row is not None:
            self.new_jobs[job_id] = replace(row, **changes)
        else:
            self.jobs.setdefault(job_id, {}).update(changes)

    def change_attempt(self, key: Key, changes: AttemptChanges) -> None:
        row = self.new_attempts.get(key)
        if row is not None:
            self.new_attempts[key] = replace(row, **changes)
        else:
            self.attempts.setdefault(key, {}).update(changes)


def project(changes: RowChanges, recorded: Recorded, before: Job | None, after: Job | None) -> None:
    """Add what one applied event changes.

    Args:
        before: the event's job before it was applied; None: it was not there.
        after: the same afterwards; None: it has ended, or the event has no job.
    """
    at_s = recorded.at_s
    match recorded.event:
        case NodeJoined() | NodeLeft() | SessionFenced() | JobSubmitted():
            return
        case HoldPlaced() | HoldLifted() | AgentsStopped() | AgentsAllowed() | BudgetSet() | BudgetLifted():
            return
        case NodeStateSet() | DevicesReserved() | DevicesUnreserved() | DevicesBusySeen():
            return
        case StartOrdered() as event:
            _order(changes, event, at_s)
        case AttemptStarted() as event:
            _start(changes, event, before, at_s)
        case CheckpointSeen() as event:
            changes.change_job(event.job_id, {"checkpoint_step": event.step})
            changes.change_attempt((event.job_id, event.attempt), {"checkpoint_step": event.step})
        case StopOrdered() as event:
            _stop(changes, event, at_s)
        case AttemptEnded() as event:
            _end_attempt(changes, event, before, after, at_s)
        case JobEnded() as event:
            _end_job(changes, event.job_id, event.end_state, at_s, {"state_reason": event.reason})
            changes.change_job(event.job_id, {"exit_reason": event.exit_reason})
        case _ as unknown:
            assert_never(unknown)


def _order(changes: RowChanges, event: StartOrdered, at_s: float) -> None:
    key = (event.job_id, event.attempt)
    changes.new_attempts[key] = AttemptRow(
        job_id=event.job_id, attempt=event.attempt, placements=event.placements, ordered_at=at_s
    )
    changes.change_job(event.job_id, {"state": JobState.STARTING, "state_reason": f"starting: {event.reason}"})


def _start(changes: RowChanges, event: AttemptStarted, before: Job | None, at_s: float) -> None:
    is_first_word = before is not None and before.attempt is not None and before.attempt.started_at_s is None
    if not is_first_word:
        return
    told: AttemptChanges = {
        "started_at": at_s,
        "launch": event.launch,
        "launch_why": event.launch_why,
        "sandbox": event.sandbox,
    }
    changes.change_attempt((event.job_id, event.attempt), told)
    if event.attempt == 1:
        changes.change_job(event.job_id, {"started_at": at_s})
    if before is not None and before.state is JobState.STARTING:
        changes.change_job(event.job_id, {"state": JobState.RUNNING, "state_reason": None})
    changes.run_status[event.job_id] = RUN_STATUS_BY_STATE[JobState.RUNNING]


def _stop(changes: RowChanges, event: StopOrdered, at_s: float) -> None:
    reason = f"asked to stop ({event.cause}): {event.reason}"
    changes.change_job(event.job_id, {"state": JobState.STOPPING, "state_reason": reason})
    stop: AttemptChanges = {"stop_ordered_at": at_s, "stop_cause": event.cause}
    if event.beneficiary is not None:
        stop["beneficiary"] = event.beneficiary
    changes.change_attempt((event.job_id, event.attempt), stop)


def _end_attempt(changes: RowChanges, event: AttemptEnded, before: Job | None, after: Job | None, at_s: float) -> None:
    changes.change_attempt(
        (event.job_id, event.attempt),
        {
            "ended_at": at_s,
            "outcome": event.outcome,
            "exit_reason": event.exit_reason,
            "exit_code": event.exit_code,
            "evidence": event.evidence,
            "run_s": event.run_s,
            "cpu_s": event.cpu_s,
            "peak_memory_mb": event.peak_memory_mb,
        },
    )
    if event.then is Then.END:
        assert event.end_state is not None
        reason = _why_ended(event, before)
        _end_job(changes, event.job_id, event.end_state, at_s, {"state_reason": reason})
        changes.change_job(event.job_id, {"exit_reason": event.exit_reason})
        return
    changes.run_status[event.job_id] = RUN_STATUS_BY_STATE[JobState.QUEUED]
    back: JobChanges = {"state": JobState.QUEUED, "state_reason": _why_back(event, before)}
    if after is not None:
        back["n_preemptions"] = after.n_preemptions
        back["n_retries"] = after.n_retries
    changes.change_job(event.job_id, back)


def _end_job(changes: RowChanges, job_id: str, end_state: JobState, at_s: float, more: JobChanges) -> None:
    changes.change_job(job_id, {"state": end_state, "ended_at": at_s, **more})
    changes.run_status[job_id] = RUN_STATUS_BY_STATE[end_state]
    changes.ended_at[job_id] = at_s


def _why_ended(event: AttemptEnded, before: Job | None) -> str | None:
    if event.end_state is JobState.SUCCEEDED:
        return None
    if event.end_state is JobState.CANCELLED and before is not None and before.attempt and before.attempt.stop:
        return before.attempt.stop.reason
    words = event.exit_reason.replace("_", " ")
    if event.exit_reason is ExitReason.RUN_TIMEOUT and before is not None and before.attempt and before.attempt.stop:
        return f"{words}: {before.attempt.stop.reason}"
    return f"{words}: {event.evidence}" if event.evidence else words


def _why_back(event: AttemptEnded, before: Job | None) -> str:
    stop = before.attempt.stop if before is not None and before.attempt is not None else None
    if event.then is Then.RETRY:
        return f"waits for a retry after attempt {event.attempt}: {event.exit_reason.replace('_', ' ')}"
    if event.outcome is AttemptOutcome.PREEMPTED and stop is not None and stop.cause is StopCause.PREEMPT:
        for_whom = f" for {stop.beneficiary}" if stop.beneficiary else ""
        return f"waits for devices again; was preempted{for_whom}"
    if stop is not None and stop.cause in (StopCause.PAUSE, StopCause.DRAIN):
        return f"waits for devices again; {'was paused' if stop.cause is StopCause.PAUSE else 'left'}: {stop.reason}"
    if event.outcome is AttemptOutcome.TIMED_OUT:
        return f"waits for devices again; attempt {event.attempt} reached its time limit"
    return f"waits for devices again; attempt {event.attempt} ended: {event.exit_reason.replace('_', ' ')}"


def new_job_row(job: Job, *, run_id: str, idempotency_token: str | None, spec: dict[str, object]) -> JobRow:
    """The row of a job that was just submitted."""
    return JobRow(
        job_id=job.job_id,
        number=job.order,
        project=job.project,
        experiment=job.experiment,
        session_id=job.session_id,
        priority_class=job.priority_class,
        priority=job.priority,
        is_preemptible=job.is_preemptible,
        state=JobState.QUEUED,
        state_reason=why_queued(job),
        submitted_at=job.submitted_at_s,
        run_id=run_id,
        idempotency_token=idempotency_token,
        spec=spec,
        array_id=None if job.array is None else job.array.array_id,
    )


def why_queued(job: Job) -> str:
    """What a job waits for that has not run yet."""
    if job.unmet is not None:
        return job.unmet
    if job.waits_for:
        return f"waits for {', '.join(describe(dependency) for dependency in job.waits_for)}"
    return "waits for devices"


def ended_jobs(changes: RowChanges) -> Sequence[str]:
    return tuple(changes.ended_at)
