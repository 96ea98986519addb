"""A task file named on the command line, checked, with this shell's Python filled in."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nightlab.failure import wrong_use

if TYPE_CHECKING:
    from agent.task import Task


def read_task(task_file: Path, *, python: str | None = None) -> Task:
    """The checked task, with the given Python or that of this shell filled in where it names none.

    Raises:
        Failure: the file or the interpreter is not as it must be.
    """
    from agent.task_file import TaskError, load_task
    from nightlab.shell import named_python, present_python
    from runtime_client.models import Environment

    try:
        task = load_task(task_file)
    except TaskError as error:
        path = error.problems[0].path if error.problems else None
        raise wrong_use(str(error), code="bad_task", path=path) from error
    named = task.job.environment.python
    if named is not None:
        near_file = task_file.parent / Path(named).expanduser()
        where = f"{task_file}: job.environment.python"
        found: str | None = named_python(str(near_file) if "/" in named else named, named_by=where)
    elif python is not None:
        found = named_python(python)
    else:
        found = present_python()
    job = task.job.model_copy(update={"environment": Environment(python=found)})
    return task.model_copy(update={"job": job})
