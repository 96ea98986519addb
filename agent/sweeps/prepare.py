"""A night made ready: the files read, everything absolute, the hour by which it has to be over. Starts nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agent.notices.telling import why_no_address
from agent.sweeps.calendar import BadTime, deadline_of, is_open, opens_at, told, window_of, zone
from agent.sweeps.cells import Cell, Cells, CodeRef, cells_of
from agent.sweeps.places import of_task_file, task_key
from agent.sweeps.states import NoState, State, data_in_state, placed, resolved
from agent.sweeps.sweep import Sweep
from agent.sweeps.sweep_file import SweepError, load_sweep
from agent.task import Task
from agent.task_checks import Problem
from agent.task_file import TaskError, data_in

ReadTask = Callable[[Path], Task]
"""Reads a task file, the Python of its jobs filled in; raises `TaskError` for what is wrong with the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedNight:
    sweep: Sweep
    file: Path
    cells: tuple[Cell, ...]
    finish_by: float | None
    """Seconds since the epoch; None: no limit."""
    outside: str | None
    """Why it may not run now, in words; None: it may."""
    opens_at: float | None = None
    """When its window opens next, where it may not run now."""
    notes: tuple[Problem, ...] = ()
    """What the night can run with, and a person should know; by its place in the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """A sweep file, its times, its tasks and its cells, with all that is wrong."""

    night: PreparedNight
    problems: tuple[Problem, ...]
    """Why it can not run, by place in the sweep file; empty: it can."""
    addresses: tuple[Problem, ...]
    """Whom the file names and nobody can tell: no reason for a night not to run."""


def prepare_night(file: Path, *, read_task: ReadTask, now: float, home: Path | None = None) -> PreparedNight:
    """
    Args:
        home: as `examine`.

    Raises:
        SweepError: the file, its times, its tasks or its cells can not be used; all problems at once.
    """
    found = examine(file, read_task=read_task, now=now, home=home)
    if found.problems:
        raise SweepError(found.night.file, list(found.problems))
    return replace(found.night, notes=(*found.night.notes, *found.addresses))


def examine(file: Path, *, read_task: ReadTask, now: float, home: Path | None = None) -> Examined:
    """Everything that can be said of a sweep file before a night.

    Args:
        home: where states of the code are put. None: nowhere, nothing is changed; the cells then name the checkout.

    Raises:
        SweepError: the file can not be read as a sweep, so that nothing else can be looked at.
    """
    file = file.expanduser().resolve()
    sweep = _with_data_folder(load_sweep(file), file.parent)
    wrong: list[Problem] = []
    times = _times(sweep, now)
    wrong += times.problems
    tasks, of_files = _tasks(sweep, file.parent, read_task)
    wrong += of_files
    codes, of_code, notes = _codes(sweep, tasks, home)
    wrong += of_code
    made = cells_of(sweep, tasks, codes) if not of_files and not of_code else Cells()
    wrong += made.problems
    night = PreparedNight(
        sweep=sweep,
        file=file,
        cells=made.cells,
        finish_by=times.finish_by,
        outside=times.outside,
        opens_at=times.opens_at,
        notes=(*notes, *made.notes),
    )
    return Examined(night=night, problems=tuple(wrong), addresses=tuple(_unknown_addresses(sweep, file.parent)))


def _tasks(sweep: Sweep, folder: Path, read_task: ReadTask) -> tuple[list[Task], list[Problem]]:
    tasks: list[Task] = []
    wrong: list[Problem] = []
    for at, name in enumerate(sweep.matrix.tasks or (sweep.task or "",)):
        try:
            tasks.append(read_task((folder / Path(name).expanduser()).resolve()))
        except TaskError as error:
            wrong += [of_task_file(problem, task_key(sweep, at), name) for problem in error.problems]
    return tasks, wrong


def _codes(
    sweep: Sweep, tasks: Sequence[Task], home: Path | None
) -> tuple[dict[str, list[CodeRef]], list[Problem], list[Problem]]:
    """States of the code by task, what is wrong with them, and which commit each of them is now."""
    codes: dict[str, list[CodeRef]] = {}
    wrong: list[Problem] = []
    notes: list[Problem] = []
    for task in tasks:
        for at, name in enumerate(sweep.matrix.code):
            place = f"matrix.code.{at}"
            try:
                state = resolved(name, task)
                codes.setdefault(task.task, []).append(_code_ref(state, task, home))
            except NoState as error:
                wrong.append(Problem(path=place, message=str(error)))
                continue
            note = Problem(path=place, message=f"{name} is commit {state.commit} now")
            notes += [] if note in notes else [note]
    return codes, wrong, notes


def _code_ref(state: State, task: Task, home: Path | None) -> CodeRef:
    if home is None:
        return CodeRef(name=state.name, root_path=str(state.repository / state.below), data=task.data)
    folder = placed(state, home)
    return CodeRef(
        name=state.name, root_path=str((folder / state.below).resolve()), data=data_in_state(task.data, state, folder)
    )


def _unknown_addresses(sweep: Sweep, folder: Path) -> Iterator[Problem]:
    for at, address in enumerate(sweep.notify):
        why = why_no_address(address, folder)
        if why is not None:
            yield Problem(path=f"notify.{at}.url_file", message=why)


def _with_data_folder(sweep: Sweep, folder: Path) -> Sweep:
    """The data versions hold for whatever folder the night is started from."""
    versions = tuple(v.model_copy(update={"data": data_in(folder, v.data)}) for v in sweep.matrix.data)
    return sweep.model_copy(update={"matrix": sweep.matrix.model_copy(update={"data": versions})})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Times:
    finish_by: float | None = None
    outside: str | None = None
    opens_at: float | None = None
    problems: tuple[Problem, ...] = ()


def _times(sweep: Sweep, now: float) -> _Times:
    wrong: list[Problem] = []

    def tried(path: str, compute: Callable[[], object]) -> None:
        try:
            compute()
        except BadTime as error:
            wrong.append(Problem(path=path, message=str(error)))

    tried("time_zone", lambda: zone(sweep.time_zone))
    where = zone(None if wrong else sweep.time_zone)
    tried("finish_by", lambda: deadline_of(sweep.finish_by, None, where, now))
    tried("window", lambda: deadline_of(None, sweep.window, where, now))
    if wrong:
        return _Times(problems=tuple(wrong))
    if sweep.window is None or is_open(window_of(sweep.window), where, now):
        return _Times(finish_by=deadline_of(sweep.finish_by, sweep.window, where, now))
    opens = opens_at(window_of(sweep.window), where, now)
    return _Times(
        finish_by=deadline_of(sweep.finish_by, sweep.window, where, now),
        outside=f"it is {told(now, where)[-5:]}, outside of its window {sweep.window}",
        opens_at=opens,
    )
