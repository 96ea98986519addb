"""The cells of a sweep: one task for each combination of its matrix. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from agent.planner.configuration import canonical, configuration_id, default_params
from agent.private_files import moved_with_code
from agent.sweeps.places import of_cell, task_key
from agent.sweeps.points import Point, named_points
from agent.sweeps.sweep import (
    N_CELLS,
    AgentMethod,
    DataVersion,
    GridMethod,
    ListMethod,
    OptunaMethod,
    RandomMethod,
    Sweep,
)
from agent.task import Budgets, DataSource, Idle, SearchMethod, Task
from agent.task_checks import Problem, cross_checks

HOUR_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    name: str
    """`task`, `task@code`, `task@code/data`: the same in every night."""
    task: Task


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeRef:
    """A state of the code, as resolved for one night."""

    name: str
    """As the file says it."""
    root_path: str
    """Absolute folder with that state of the task's code."""
    data: tuple[DataSource, ...] = ()
    """The task's, as this state has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    cells: tuple[Cell, ...] = ()
    problems: tuple[Problem, ...] = field(default=())
    """Why there are none, by their place in the sweep file; empty where there are."""
    notes: tuple[Problem, ...] = ()
    """What is worth saying, by its place too."""


def cells_of(sweep: Sweep, tasks: Sequence[Task], codes: Mapping[str, Sequence[CodeRef]] | None = None) -> Cells:
    """The cells in order: tasks first, then states of the code, then data versions.

    Args:
        tasks: as their files say, absolute, in the order of the sweep.
        codes: by the name of the task, where the sweep names states of the code.
    """
    found: list[Cell] = []
    wrong: list[Problem] = []
    notes: list[Problem] = []
    data: Sequence[tuple[int, DataVersion] | None] = list(enumerate(sweep.matrix.data)) or (None,)
    n_cells = len(tasks) * max(len(sweep.matrix.code), 1) * len(data)
    if n_cells > N_CELLS:
        return Cells(problems=(Problem(path="matrix", message=f"{n_cells} cells; at most {N_CELLS} are possible"),))
    for at, task in enumerate(tasks):
        named = named_points(sweep, task)
        wrong += [p for p in named.problems if p not in wrong]
        notes += [p for p in named.notes if p not in notes]
        if isinstance(sweep.method, AgentMethod) and task.model is None:
            what = f"an agent needs a model, and the task {task.task} names none: add model: {{name: ...}} to its file"
            wrong.append(Problem(path="method", message=what))
        if named.problems:
            continue
        refs: Sequence[CodeRef | None] = (codes or {}).get(task.task) or (None,)
        for ref, version in itertools.product(refs, data):
            made = _derived(sweep, task, ref, version[1] if version else None, named.points, n_cells)
            placed = (of_cell(p, task, task_key(sweep, at), version) for p in cross_checks(made))
            wrong += [p for p in placed if p not in wrong]
            found.append(Cell(name=_name(task, ref, version[1] if version else None), task=made))
    names = [cell.name for cell in found]
    for twice in sorted({name for name in names if names.count(name) > 1}):
        wrong.append(Problem(path="matrix", message=f"two cells are named {twice!r}; give tasks and data other names"))
    return Cells(cells=() if wrong else tuple(found), problems=tuple(wrong), notes=tuple(notes))


def _name(task: Task, ref: CodeRef | None, version: DataVersion | None) -> str:
    code = f"@{ref.name}" if ref is not None else ""
    return f"{task.task}{code}" + (f"/{version.name}" if version is not None else "")


def _derived(
    sweep: Sweep,
    task: Task,
    ref: CodeRef | None,
    version: DataVersion | None,
    points: Sequence[Point],
    n_cells: int,
) -> Task:
    """The task of one cell: what the sweep says goes before what the task says."""
    job, score = task.job, task.score
    if ref is not None and job.code_source is not None:
        score = moved_with_code(task, ref.root_path)
        source = job.code_source.model_copy(update={"root_path": ref.root_path})
        job = job.model_copy(update={"code_source": source})
    if version is not None:
        job = job.model_copy(
            update={
                "parameters": {**job.parameters, **version.parameters},
                "env_variables": {**job.env_variables, **version.env_variables},
            }
        )
    return task.model_copy(
        update={
            "job": job,
            "score": score,
            "data": version.data
            if version is not None and version.data
            else ref.data
            if ref is not None
            else task.data,
            "search": _search(sweep, points),
            "budgets": _budgets(sweep, task, points, n_cells),
            "idle": Idle(replicate=False, explore=False),
            "priority_class": sweep.priority_class,
            "project": sweep.project or task.project,
            "slots": sweep.slots or task.slots,
            "held_out": task.held_out if sweep.confirm else None,
            "notify": (),  # the night tells people, once
        }
    )


def _search(sweep: Sweep, points: Sequence[Point]) -> SearchMethod:
    how = {"replicates": sweep.replicates, "confirm": sweep.confirm}
    match sweep.method:
        case GridMethod() | ListMethod():
            return SearchMethod(use=("points",), points=tuple(points), **how)
        case RandomMethod():
            return SearchMethod(use=("random",), **how)
        case OptunaMethod(sampler=sampler):
            return SearchMethod(use=("sampler",), sampler=sampler, **how)
        case AgentMethod():
            return SearchMethod(use=("sampler", "refiner", "replicator", "model"), **how)


def _budgets(sweep: Sweep, task: Task, points: Sequence[Point], n_cells: int) -> Budgets:
    """What one cell may use; the default configuration is one of its trials."""
    default = default_params(task)
    ids = {configuration_id(canonical({**default, **point}, task)) for point in points}
    match sweep.method:
        case GridMethod() | ListMethod():
            n_trials = len(ids | {configuration_id(default)})
        case RandomMethod(trials=n) | OptunaMethod(trials=n) | AgentMethod(trials=n):
            n_trials = n
    limits = sweep.budgets
    return Budgets(
        trials=n_trials,
        wall_minutes=limits.wall_minutes,
        device_seconds=None if limits.device_hours is None else limits.device_hours * HOUR_S / n_cells,
        tokens=None if limits.tokens is None else max(limits.tokens // n_cells, 1),
        cost_usd=None if limits.cost_usd is None else limits.cost_usd / n_cells,
        usd_per_device_hour=limits.usd_per_device_hour or task.budgets.usd_per_device_hour,
    )
