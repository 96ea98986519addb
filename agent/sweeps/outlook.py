"""What a night would come to before it is begun: jobs by cell, device-hours, when it would end. Pure; a forecast.

Jobs are counted as a session launches them: every configuration on its replicates, the fresh pairs of the end, the
looks at held-out data. The end is that of a night whose devices are its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from agent.planner.held_out import n_looks
from agent.planner.plan import n_search_trials
from agent.planner.seeds import n_pairs_at_most
from agent.sweeps.cells import Cell
from agent.task import Task

HOUR_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTime:
    """How long one trial takes, its scorer included."""

    seconds: float
    basis: str
    """What it was learned from, in words."""
    n: int
    """Trials or jobs that it is the median of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellOutlook:
    cell: str
    n_configurations: int
    """The default included."""
    n_seeds: int
    """Of each configuration in the search."""
    n_confirm: int
    """Fresh trials of the best and the default at the end."""
    n_confirm_most: int
    """The same where the first pairs decide nothing."""
    n_looks: int
    """At held-out data."""
    jobs_each: int
    """2 where a scorer measures each trial, else 1."""
    devices_each: int
    slots: int | None
    """Trials at once at most; None: as many as there are devices."""
    run_time: RunTime | None
    """None: no trial of this task is known to have run."""
    budget_s: float | None
    """Device-seconds that it may use; None: no limit."""

    @property
    def n_search(self) -> int:
        return self.n_configurations * self.n_seeds

    @property
    def n_jobs(self) -> int:
        return (self.n_search + self.n_confirm + self.n_looks) * self.jobs_each

    @property
    def n_jobs_most(self) -> int:
        return (self.n_search + self.n_confirm_most + self.n_looks) * self.jobs_each

    def device_seconds(self, *, at_most: bool = False) -> float | None:
        """Of its trials, cut at its budget; None: not known."""
        if self.run_time is None:
            return None
        n_trials = (self.n_jobs_most if at_most else self.n_jobs) // self.jobs_each
        needed = n_trials * self.run_time.seconds * self.devices_each
        return needed if self.budget_s is None else min(needed, self.budget_s)

    @property
    def is_cut_by_budget(self) -> bool:
        """Whether its budget ends it before all of its trials have run."""
        used = self.device_seconds()
        return used is not None and self.budget_s is not None and used >= self.budget_s


def cell_outlook(cell: Cell, run_time: RunTime | None) -> CellOutlook:
    task = cell.task
    n_configurations = n_search_trials(task)
    sides = 2 if n_configurations > 1 else 1
    is_confirmed = task.search.confirm
    return CellOutlook(
        cell=cell.name,
        n_configurations=n_configurations,
        n_seeds=task.search.replicates,
        n_confirm=sides * task.seeds.fresh if is_confirmed else 0,
        n_confirm_most=(2 * n_pairs_at_most(task) if sides == 2 else task.seeds.fresh) if is_confirmed else 0,
        n_looks=n_looks(task),
        jobs_each=2 if task.score is not None else 1,
        devices_each=task.job.compute.num_accelerators,
        slots=task.slots,
        run_time=run_time,
        budget_s=_budget_s(task),
    )


def _budget_s(task: Task) -> float | None:
    """The tighter one of the device time and the money."""
    limits = task.budgets
    found = [] if limits.device_seconds is None else [limits.device_seconds]
    if limits.cost_usd is not None and limits.usd_per_device_hour is not None:
        found.append(limits.cost_usd / limits.usd_per_device_hour * HOUR_S)
    return min(found, default=None)


def duration_s(
    cells: Sequence[CellOutlook], *, n_devices: int, cells_at_once: int, at_most: bool = False
) -> float | None:
    """How long the night takes when all devices are its own; None: not known of some cell, or it never could run.

    Cells begin in order, so many at once; those that run share the devices by what they can use.
    """
    waiting = [_work(cell, n_devices, at_most=at_most) for cell in cells]
    if any(one is None for one in waiting):
        return None
    left = [one for one in waiting if one is not None]
    running: list[_Work] = []
    clock_s = 0.0
    while left or running:
        while left and len(running) < cells_at_once:
            running.append(left.pop(0))
        pace = min(1.0, n_devices / sum(one.n_devices for one in running))
        step_s = min(one.seconds for one in running) / pace
        clock_s += step_s
        running = [
            _Work(n_devices=one.n_devices, seconds=one.seconds - step_s * pace)
            for one in running
            if one.seconds - step_s * pace > 1e-9
        ]
    return clock_s


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    n_devices: int
    """That it uses while it runs."""
    seconds: float
    """That it takes with all of them."""


def _work(cell: CellOutlook, n_devices: int, *, at_most: bool) -> _Work | None:
    """Search and end follow each other: the one has to be over before the other is chosen."""
    slots = min(n_devices // cell.devices_each, cell.slots or n_devices)
    if cell.run_time is None or slots == 0:
        return None
    n_end = (cell.n_confirm_most if at_most else cell.n_confirm) + cell.n_looks
    waves = math.ceil(cell.n_search / slots) + math.ceil(n_end / slots)
    seconds = waves * cell.run_time.seconds
    if cell.budget_s is not None:
        seconds = min(seconds, cell.budget_s / (slots * cell.devices_each))
    return _Work(n_devices=slots * cell.devices_each, seconds=seconds)
