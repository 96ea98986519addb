"""The hour by which a session has to be over: what may still be launched before it. Pure.

A trial is launched when it can be expected to end in time. Where trials of the task go on from checkpoints, one that
can not end is launched too, as long as a useful part of it fits. Once a job had to leave for the hour, nothing more is
launched: who leaves last may take longer than is left.
"""

from __future__ import annotations

from dataclasses import dataclass

from agent.planner.history import History
from agent.store.views import TrialState, TrialView
from agent.task import Task

USEFUL = 0.1
"""Part of a trial that must fit, where trials can go on."""
_N_OF_LATE = 20
"""Measured trials by which the next one is judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hour:
    at: float
    """Seconds since the epoch."""
    now: float
    has_left: bool
    """A job had to leave for it already."""

    @classmethod
    def of(cls, finish_by: float | None, history: History, now: float) -> Hour | None:
        """None: there is no such hour."""
        if finish_by is None:
            return None
        has_left = any(trial.facts.left_for == finish_by for trial in history.trials)
        return cls(at=finish_by, now=now, has_left=has_left)

    @property
    def left_s(self) -> float:
        return max(self.at - self.now, 0.0)

    @property
    def has_come(self) -> bool:
        return self.now >= self.at

    @property
    def is_closed(self) -> bool:
        """Nothing more is launched, whatever it is."""
        return self.has_come or self.has_left


def fits(task: Task, history: History, hour: Hour | None, n_slots: int, trial: TrialView | None = None) -> bool:
    """Whether a trial may be launched now.

    Args:
        n_slots: trials that run at once; one more waits, and is begun when one of them ends.
        trial: one that has begun needs less; None: a new one.
    """
    if hour is None:
        return True
    if hour.is_closed:
        return False
    times = _times_s(task, history)
    if not times:
        return True
    done_s = 0.0 if trial is None else trial.device_seconds / task.job.compute.num_accelerators
    waits_s = max(times) if len(history.in_flight) >= n_slots else 0.0
    if hour.left_s >= waits_s + max(max(times) - done_s, 0.0):
        return True
    mean_s = sum(times) / len(times)
    return can_go_on(history) and hour.left_s >= task.job.grace_seconds + USEFUL * mean_s


def can_go_on(history: History) -> bool:
    """Whether a trial of this task was seen to leave a checkpoint."""
    return any(trial.facts.checkpoint_step is not None for trial in history.trials)


def _times_s(task: Task, history: History) -> list[float]:
    """How long measured trials took of late, all their jobs together."""
    found: list[float] = []
    for trial in reversed(history.trials):
        if trial.state is TrialState.MEASURED and trial.device_seconds > 0:
            found.append(trial.device_seconds / task.job.compute.num_accelerators)
        if len(found) == _N_OF_LATE:
            break
    return found
