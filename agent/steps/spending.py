"""What a session has used: from the store for ended trials, from the job views for those in flight."""

from __future__ import annotations

from dataclasses import replace

from agent.deps import Deps
from agent.planner.budget import Spend, is_device_time_limited
from agent.planner.hour import Hour


def spend_so_far(deps: Deps) -> Spend:
    """Ended trials and those in flight. Device-seconds are brought up to date only where they are limited."""
    is_limited = is_device_time_limited(deps.task.budgets) or deps.task.budgets.cost_usd is not None
    known = deps.record.session() if is_limited else deps.memory.session
    running_s = running_device_seconds(deps) if is_limited else 0.0
    hour = Hour.of(deps.memory.session.finish_by, deps.book.history(), deps.clock())
    return replace(
        Spend.of(known),
        device_seconds=known.device_seconds + running_s,
        n_slots=deps.memory.n_slots,
        refusal=deps.memory.over_budget,
        exhausted=deps.memory.exhausted,
        hour_left_s=None if hour is None else hour.left_s,
    )


def running_device_seconds(deps: Deps) -> float:
    """Of trials in flight, as their jobs were last seen."""
    now = deps.clock()
    running = 0.0
    for trial in deps.book.history().in_flight:
        view = deps.memory.jobs.get(trial.carried_by) if trial.carried_by is not None else None
        is_counted = trial.facts.scorer is not None and trial.facts.score_job_id is None
        if view is not None and not is_counted:
            running += view.device_seconds(now)
    return running
