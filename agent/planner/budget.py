"""Budgets: hard limits of the task, and when the search must stop so that the answer can still be paid for. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from agent.planner.history import History
from agent.planner.seeds import is_fresh
from agent.store.views import TrialState
from agent.task import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Spend:
    """What is used so far."""

    device_seconds: float
    """Of all trials, those in flight included."""
    wall_seconds: float
    n_slots: int = 1
    """Trials that run at once."""
    refusal: str | None = None
    """What the runtime said when a budget of device time had no room for a trial; None: it has not."""


def spent(task: Task, spend: Spend) -> str | None:
    """The budget that is used up, in words; None: there is room."""
    budgets = task.budgets
    if spend.refusal is not None:
        return spend.refusal
    if budgets.device_seconds is not None and spend.device_seconds >= budgets.device_seconds:
        return f"budgets.device_seconds: {spend.device_seconds:.0f} of {budgets.device_seconds:g} are used"
    if budgets.wall_minutes is not None and spend.wall_seconds >= budgets.wall_minutes * 60:
        return f"budgets.wall_minutes: {spend.wall_seconds / 60:.1f} of {budgets.wall_minutes:g} are used"
    return None


def reserve_reached(task: Task, history: History, spend: Spend) -> str | None:
    """Whether what is left is needed for the fresh seeds and the held-out looks, in words; None: the search goes on.

    Estimated from the mean of the measured trials; without any, the search goes on.
    """
    seconds = [t.device_seconds for t in history.trials if t.state is TrialState.MEASURED and t.device_seconds > 0]
    if not seconds:
        return None
    mean_s = sum(seconds) / len(seconds)
    n_left = _n_confirming_left(task, history)
    n_in_flight = len(history.in_flight)
    budgets = task.budgets
    if budgets.device_seconds is not None:
        left_s = budgets.device_seconds - spend.device_seconds
        if left_s <= mean_s * (n_left + n_in_flight / 2):
            return f"the {left_s:.0f} device-seconds left are needed for {n_left} confirming trials"
    if budgets.wall_minutes is not None:
        left_s = budgets.wall_minutes * 60 - spend.wall_seconds
        trial_s = mean_s / task.job.compute.num_accelerators
        if left_s <= trial_s * (1 + (n_left + n_in_flight / 2) / max(spend.n_slots, 1)):
            return f"the {left_s:.0f} seconds left are needed for {n_left} confirming trials"
    return None


def _n_confirming_left(task: Task, history: History) -> int:
    looks = task.held_out.looks if task.held_out else 0
    n_done = sum(1 for _, seed in history.replicates if is_fresh(task, seed))
    return max(2 * task.seeds.fresh + looks - n_done - len(history.held_out), 0)
