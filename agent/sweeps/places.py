"""Where in a sweep file the cause of a problem stands: at a key of the sweep, or in a task file that it names. Pure."""

from __future__ import annotations

from agent.sweeps.sweep import DataVersion, Sweep
from agent.task import Task
from agent.task_checks import Problem


def task_key(sweep: Sweep, at: int) -> str:
    """The key that names the task file at that place."""
    return f"matrix.tasks.{at}" if sweep.matrix.tasks else "task"


def of_task_file(problem: Problem, key: str, name: str) -> Problem:
    """A problem of a task file, at the key that names the file.

    Args:
        name: as the sweep file says it.
    """
    where = f"{name}: {problem.path}" if problem.path else name
    return Problem(path=key, message=f"{where}: {problem.message}")


def of_cell(problem: Problem, task: Task, key: str, version: tuple[int, DataVersion] | None) -> Problem:
    """A problem of the task of a cell, which the task file alone does not have."""
    place = _cause(problem.path, task, version)
    if place is None:
        return of_task_file(problem, key, f"task {task.task}")
    return Problem(path=place, message=f"{problem.message} (task {task.task})")


def _cause(path: str, task: Task, version: tuple[int, DataVersion] | None) -> str | None:
    """The key of the sweep that a path of the derived task comes from; None: it is the task file's."""
    if version is not None:
        at, given = version
        name = path.removeprefix("job.parameters.")
        if path.startswith("fidelity.") and task.fidelity is not None:
            name = task.fidelity.parameter
        if name in given.parameters:
            return f"matrix.data.{at}.parameters.{name}"
        if path.startswith("data.") and given.data:
            return f"matrix.data.{at}.{path}"
    match path:
        case "seeds.search" | "seeds.first_racing":
            return "replicates"
        case "seeds.max_pairs":
            return "confirm"
        case _:
            return None
