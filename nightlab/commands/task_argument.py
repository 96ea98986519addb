"""A task file named on the command line, checked, with this shell's Python filled in."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nightlab.failure import Failure, wrong_use

if TYPE_CHECKING:
    from agent.task import Task

PYTHON_KEY = "job.environment.python"


def read_task(task_file: Path, *, python: str | None = None) -> Task:
    """The checked task, with the given Python or that of this shell filled in where it names none.

    Raises:
        Failure: the file or the interpreter is not as it must be.
    """
    from agent.task_file import TaskError

    try:
        return task_with_python(task_file, python=python)
    except TaskError as error:
        problem = error.problems[0]
        code = "bad_python" if problem.path == PYTHON_KEY else "bad_task"
        raise wrong_use(str(error), code=code, path=problem.path or None) from error


def task_with_python(task_file: Path, *, python: str | None) -> Task:
    """The same, for callers that gather what is wrong.

    Raises:
        TaskError: the file is not as it must be, the interpreter that it names included.
        Failure: the given interpreter is not.
    """
    from agent.task_checks import Problem
    from agent.task_file import TaskError, load_task
    from nightlab.shell import named_python, present_python
    from runtime_client.models import Environment

    task = load_task(task_file)
    named = task.job.environment.python
    if named is not None:
        near_file = task_file.parent / Path(named).expanduser()
        try:
            found: str | None = named_python(str(near_file) if "/" in named else named, named_by="names")
        except Failure as error:
            raise TaskError(task_file, [Problem(path=PYTHON_KEY, message=error.message)]) from error
    elif python is not None:
        found = named_python(python)
    else:
        found = present_python()
    job = task.job.model_copy(update={"environment": Environment(python=found)})
    return task.model_copy(update={"job": job})
