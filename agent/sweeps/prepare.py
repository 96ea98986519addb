"""A night made ready: the files read, everything absolute, the hour by which it has to be over. Starts nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agent.sweeps.calendar import BadTime, deadline_of, is_open, told, window_of, zone
from agent.sweeps.cells import Cell, cells_of
from agent.sweeps.sweep import Sweep
from agent.sweeps.sweep_file import SweepError, load_sweep
from agent.task import Task
from agent.task_checks import Problem
from agent.task_file import data_in

ReadTask = Callable[[Path], Task]
"""Reads a task file, the Python of its jobs filled in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedNight:
    sweep: Sweep
    file: Path
    cells: tuple[Cell, ...]
    finish_by: float | None
    """Seconds since the epoch; None: no limit."""
    outside: str | None
    """Why it may not run now, in words; None: it may."""


def prepare_night(file: Path, *, read_task: ReadTask, now: float) -> PreparedNight:
    """
    Raises:
        SweepError: the file, its times or its cells can not be used; all problems of one kind at once.
        Exception: what `read_task` raises.
    """
    file = file.expanduser().resolve()
    sweep = _with_data_folder(load_sweep(file), file.parent)
    if sweep.matrix.code:
        what = "states of the code are not supported yet; leave matrix.code out, and the code runs as it lies there"
        raise SweepError(file, [Problem(path="matrix.code", message=what)])
    finish_by, outside = _times(sweep, file, now)
    named = sweep.matrix.tasks or (sweep.task or "",)
    tasks = [read_task((file.parent / Path(name).expanduser()).resolve()) for name in named]
    made = cells_of(sweep, tasks)
    if made.problems:
        raise SweepError(file, list(made.problems))
    return PreparedNight(sweep=sweep, file=file, cells=made.cells, finish_by=finish_by, outside=outside)


def _with_data_folder(sweep: Sweep, folder: Path) -> Sweep:
    """The data versions hold for whatever folder the night is started from."""
    versions = tuple(v.model_copy(update={"data": data_in(folder, v.data)}) for v in sweep.matrix.data)
    return sweep.model_copy(update={"matrix": sweep.matrix.model_copy(update={"data": versions})})


def _times(sweep: Sweep, file: Path, now: float) -> tuple[float | None, str | None]:
    wrong: list[Problem] = []

    def tried(path: str, compute: Callable[[], object]) -> None:
        try:
            compute()
        except BadTime as error:
            wrong.append(Problem(path=path, message=str(error)))

    tried("time_zone", lambda: zone(sweep.time_zone))
    if not wrong:
        where = zone(sweep.time_zone)
        tried("finish_by", lambda: deadline_of(sweep.finish_by, None, where, now))
        tried("window", lambda: deadline_of(None, sweep.window, where, now))
    if wrong:
        raise SweepError(file, wrong)
    outside = None
    if sweep.window is not None and not is_open(window_of(sweep.window), where, now):
        outside = f"it is {told(now, where)[-5:]}, outside of its window {sweep.window}"
    return deadline_of(sweep.finish_by, sweep.window, where, now), outside
