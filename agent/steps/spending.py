"""What a session has used: from the store for ended trials, from the job views for those in flight."""

from __future__ import annotations

from agent.deps import Deps
from agent.planner.budget import Spend


def spend_so_far(deps: Deps) -> Spend:
    """Ended trials and those in flight. Device-seconds are brought up to date only where they are limited."""
    known = deps.memory.session
    if deps.task.budgets.device_seconds is None:
        return Spend(
            device_seconds=known.device_seconds,
            wall_seconds=known.wall_seconds,
            n_slots=deps.memory.n_slots,
            refusal=deps.memory.over_budget,
            exhausted=deps.memory.exhausted,
        )
    history = deps.book.history()
    now = deps.clock()
    running = 0.0
    for trial in history.in_flight:
        view = deps.memory.jobs.get(trial.job_id) if trial.job_id is not None else None
        if view is not None:
            running += view.device_seconds(now)
    return Spend(
        device_seconds=deps.record.session().device_seconds + running,
        wall_seconds=known.wall_seconds,
        n_slots=deps.memory.n_slots,
        refusal=deps.memory.over_budget,
        exhausted=deps.memory.exhausted,
    )
