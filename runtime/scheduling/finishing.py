"""The hour by which a job is to be over (`finish_by`): who has to leave for it, and what ends without a start. Pure.

Whoever runs is asked in time to checkpoint and leave, so that it has left by then even if it uses all of its grace and
has to be killed. Whoever waits has ended as soon as a start would only be a notice to leave. A runtime that was not
there at that time does both when it is back.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from runtime.model.events import JobEnded, StopOrdered
from runtime.model.indexes import Hour, hour_of
from runtime.model.leaving import KILL_S, grace_after, grace_of
from runtime.model.nouns import Attempt, Job
from runtime.model.state import State
from runtime.model.states import LEAVING, ExitReason, JobState, StopCause

LATE_GRACE_S = 30.0
"""What an attempt that is asked too late still gets of its own grace, so that its work is not lost for the runtime's
absence."""


def leaves_at_s(state: State, hour: Hour) -> float:
    """When these jobs have to be asked to leave, or, while they wait, from when they are not started any more."""
    leave_s = (hour.leave_s or None) if hour.is_held else state.leaving.longest_of(hour.experiment)
    return hour.finish_by_s - KILL_S - grace_after(hour.grace_s, leave_s)


def has_no_time(state: State, job: Job, now_s: float) -> bool:
    """Whether a queued job can not be started any more for want of time."""
    hour = hour_of(job)
    return hour is not None and now_s >= leaves_at_s(state, hour)


def events_from_hours(state: State, now_s: float) -> Iterator[StopOrdered | JobEnded]:
    """What the hours of the jobs bring about now."""
    come = (hour for hour in _near(state, now_s) if now_s >= leaves_at_s(state, hour))
    jobs = [state.jobs[job_id] for hour in come for job_id in state.index.hours[hour]]
    for job in sorted(jobs, key=lambda job: job.order):
        if job.attempt is None:
            yield JobEnded(
                job_id=job.job_id,
                end_state=JobState.CANCELLED,
                exit_reason=ExitReason.DEADLINE,
                reason="its hour (finish_by) came, and too little time was left for a start",
            )
        elif _is_to_be_asked(job, job.attempt):
            yield StopOrdered(
                job_id=job.job_id,
                attempt=job.attempt.number,
                cause=StopCause.DEADLINE,
                reason=_why_asked(job, now_s),
                beneficiary=None,
                grace_s=_grace_s(job, now_s),
            )


def next_hour_s(state: State, now_s: float) -> float | None:
    """When an hour brings something about next; None: none will."""
    near, hours = _near(state, now_s), state.index.hours_in_order
    times = [leaves_at_s(state, hour) for hour in near]
    times += [hour.earliest_s for hour in hours[len(near) : len(near) + 1]]
    return min((at_s for at_s in times if at_s > now_s), default=None)


def _near(state: State, now_s: float) -> Sequence[Hour]:
    """The hours for which somebody may have to leave by now."""
    hours = state.index.hours_in_order
    return hours[: bisect_right(hours, now_s, key=lambda hour: hour.earliest_s)]


def describe(job: Job, now_s: float) -> str:
    """`its hour (finish_by): it has to be over in 32 s`."""
    assert job.finish_by_s is not None, "it has an hour"
    left_s = job.finish_by_s - now_s
    when = f"has to be over in {left_s:.0f} s" if left_s > 0 else f"had to be over {-left_s:.0f} s ago"
    return f"its hour (finish_by): it {when}"


def _why_asked(job: Job, now_s: float) -> str:
    assert job.finish_by_s is not None, "it has an hour"
    left_s = job.finish_by_s - now_s
    when = f"{left_s:.0f} s before" if left_s > 0 else f"{-left_s:.0f} s late, since the runtime was away"
    return f"its hour (finish_by) came; it was asked to leave {when}"


def _is_to_be_asked(job: Job, attempt: Attempt) -> bool:
    """Unless it leaves already, and in time; or ends anyway."""
    stop = attempt.stop
    if stop is None:
        return True
    assert job.finish_by_s is not None, "it has an hour"
    returns = stop.cause in LEAVING or stop.cause is StopCause.HANG
    return returns and stop.ordered_at_s + stop.grace_s > job.finish_by_s - KILL_S


def _grace_s(job: Job, now_s: float) -> float:
    assert job.finish_by_s is not None, "it has an hour"
    left_s = job.finish_by_s - KILL_S - now_s
    return min(grace_of(job), max(left_s, min(job.grace_s, LATE_GRACE_S)))
