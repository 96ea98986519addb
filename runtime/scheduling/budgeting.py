"""Which budget is used up, what a job would add to it, and what follows. Pure.

What will be used is what jobs are expected to need: as long as like jobs ran, and never longer than their time limit.
A time limit alone is no expectation: a job of whose like nothing is known is expected to need nothing, and is stopped
when the budget is used up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from runtime.model.budgets import Budget, held_s
from runtime.model.events import JobEnded, StopOrdered
from runtime.model.leaving import grace_of
from runtime.model.nouns import Job
from runtime.model.state import State
from runtime.model.states import ExitReason, JobState, StopCause

from .reserve import end_s, run_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """A budget as it stands. Device-seconds."""

    budget: Budget
    spent_s: float
    """Of attempts that ended, and up to now of those that hold devices."""
    committed_s: float
    """What live jobs are expected to use from now on, as far as that is known."""
    n_unknown: int
    """Live jobs of which it is not."""

    @property
    def is_used_up(self) -> bool:
        return self.spent_s >= self.budget.limit_s

    def lacks_s(self, asked_s: float) -> float:
        """By how much a further job would overdraw it; 0 or less: it does not."""
        return self.spent_s + self.committed_s + asked_s - self.budget.limit_s


def bill(state: State, budget: Budget, now_s: float) -> Bill:
    """What was spent of a budget, and what is promised."""
    committed_s, n_unknown = 0.0, 0
    for job in members(state, budget):
        left_s = _left_s(state, job, now_s)
        committed_s += left_s or 0.0
        n_unknown += left_s is None
    return Bill(budget=budget, spent_s=spent_s(state, budget, now_s), committed_s=committed_s, n_unknown=n_unknown)


def spent_s(state: State, budget: Budget, now_s: float) -> float:
    running = sum(held_s(job, now_s) for job in _holding(state, budget))
    return state.spent.get(budget.key, 0.0) + running


def asked_s(state: State, job: Job) -> float | None:
    """What a queued job is expected to use; None: nothing is known."""
    expected_s = state.estimates.expected_s(job.project, job.experiment, job.shape)
    takes_s = None if expected_s is None else run_s(state, job)
    return None if takes_s is None else takes_s * job.shape.n_devices


def members(state: State, budget: Budget) -> Iterator[Job]:
    """Live jobs under it, in order of submission."""
    return (state.jobs[job_id] for job_id in state.index.accounts.get(budget.key, ()))


def events_from_budgets(state: State, now_s: float) -> Iterator[StopOrdered | JobEnded]:
    """When a budget is used up, what runs under it is asked to checkpoint and end, and what waits has ended."""
    done: set[str] = set()
    for budget in state.budgets.values():
        if spent_s(state, budget, now_s) < budget.limit_s:
            continue
        why = f"the budget of {budget.key}, {budget.limit_s:g} device-seconds, is used up"
        for job in members(state, budget):
            if job.job_id not in done:
                done.add(job.job_id)
                yield from _ending(job, why)


def next_used_up_s(state: State, now_s: float) -> float | None:
    """When the first budget will be used up by what runs now; None: none will."""
    times = []
    for budget in state.budgets.values():
        n_devices = sum(job.shape.n_devices for job in _holding(state, budget))
        left_s = budget.limit_s - spent_s(state, budget, now_s)
        if n_devices and left_s > 0:
            times.append(now_s + left_s / n_devices)
    return min(times, default=None)


def explain_shortage(found: Bill, asked: float | None) -> str:
    """The arithmetic, in words."""
    budget = found.budget
    parts = [f"{found.spent_s:.0f} spent", f"{found.committed_s:.0f} that its live jobs are expected to need"]
    if asked is not None:
        parts.append(f"{asked:.0f} for this one")
    total_s = found.spent_s + found.committed_s + (asked or 0.0)
    unknown = f" ({found.n_unknown} of them of unknown length, counted as 0)" if found.n_unknown else ""
    return f"{budget.key} may use {budget.limit_s:g} device-seconds: {' + '.join(parts)}{unknown} = {total_s:.0f}"


def _ending(job: Job, why: str) -> Iterator[StopOrdered | JobEnded]:
    attempt = job.attempt
    if attempt is None:
        yield JobEnded(job_id=job.job_id, end_state=JobState.CANCELLED, exit_reason=ExitReason.OVER_BUDGET, reason=why)
    elif attempt.stop is None or attempt.stop.cause not in _STRONGER:
        yield StopOrdered(
            job_id=job.job_id,
            attempt=attempt.number,
            cause=StopCause.BUDGET,
            reason=why,
            beneficiary=None,
            grace_s=grace_of(job),
        )


_STRONGER = frozenset({StopCause.BUDGET, StopCause.DEADLINE, StopCause.TIMEOUT, StopCause.CANCEL})
"""Asked to stop for one of these, an attempt ends anyway."""


def _holding(state: State, budget: Budget) -> Iterator[Job]:
    holding = (state.jobs[job_id] for job_id in state.index.holding)
    return (job for job in holding if budget.covers(job))


def _left_s(state: State, job: Job, now_s: float) -> float | None:
    """Device-seconds that a live job is expected to use from now on; None: nothing is known."""
    if job.attempt is None:
        return asked_s(state, job)
    is_known = job.attempt.expected_s is not None or state.estimates.expected_s(job.project, job.experiment, job.shape)
    ends_at_s = end_s(state, job, job.attempt, now_s) if is_known else None
    return None if ends_at_s is None else max(0.0, ends_at_s - now_s) * job.shape.n_devices
