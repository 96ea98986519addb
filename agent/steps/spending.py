"""What a session has used: from the store for ended trials, from the job views for those in flight."""

from __future__ import annotations

from agent.deps import Deps
from agent.planner.budget import Spend
from runtime_client.models import JobView


def job_device_seconds(job: JobView, now: float) -> float:
    """Device-seconds leased by all attempts of a job until `now` (seconds since the epoch)."""
    total = 0.0
    for attempt in job.attempts:
        n_devices = sum(len(placement.devices) for placement in attempt.placements)
        end = attempt.ended_at if attempt.ended_at is not None else now
        total += max(end - attempt.ordered_at, 0.0) * n_devices
    return total


def spend_so_far(deps: Deps) -> Spend:
    """Ended trials and those in flight. Device-seconds are brought up to date only where they are limited."""
    known = deps.memory.session
    if deps.task.budgets.device_seconds is None:
        return Spend(device_seconds=known.device_seconds, wall_seconds=known.wall_seconds, n_slots=deps.memory.n_slots)
    history = deps.book.history()
    now = deps.clock()
    running = 0.0
    for trial in history.in_flight:
        view = deps.memory.jobs.get(trial.job_id) if trial.job_id is not None else None
        if view is not None:
            running += job_device_seconds(view, now)
    return Spend(
        device_seconds=deps.record.session().device_seconds + running,
        wall_seconds=known.wall_seconds,
        n_slots=deps.memory.n_slots,
    )
