"""Actions of a decision as the events that record them. Pure."""

from __future__ import annotations

from runtime.model.events import JobEnded, StartOrdered, StopOrdered
from runtime.model.states import ExitReason, JobState, StopCause

from .decision import Action, Expire, Preempt, Start, TimeOut


def event_of(action: Action) -> StartOrdered | StopOrdered | JobEnded:
    """The event that records the intent."""
    match action:
        case Start():
            return StartOrdered(
                job_id=action.job_id, attempt=action.attempt, placements=action.placements, reason=action.reason
            )
        case Preempt():
            return StopOrdered(
                job_id=action.job_id,
                attempt=action.attempt,
                cause=StopCause.PREEMPT,
                reason=action.reason,
                beneficiary=action.beneficiary,
                grace_s=action.grace_s,
            )
        case TimeOut():
            return StopOrdered(
                job_id=action.job_id,
                attempt=action.attempt,
                cause=StopCause.RENEW if action.is_renewed else StopCause.TIMEOUT,
                reason=action.reason,
                beneficiary=None,
                grace_s=action.grace_s,
            )
        case Expire():
            return JobEnded(
                job_id=action.job_id,
                end_state=JobState.FAILED,
                exit_reason=ExitReason.QUEUE_TIMEOUT,
                reason=action.reason,
            )
