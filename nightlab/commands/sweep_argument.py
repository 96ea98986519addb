"""A sweep file named on the command line: read, examined, made ready for a night."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from nightlab.failure import wrong_use

from .task_argument import task_with_python

if TYPE_CHECKING:
    from agent.sweeps.prepare import Examined, PreparedNight
    from agent.sweeps.sweep import Sweep
    from agent.task import Task


def read_sweep(file: Path) -> Sweep:
    """What the file says; its tasks are not looked at.

    Raises:
        Failure: it is no sweep.
    """
    from agent.sweeps.sweep_file import load_sweep

    with _wrong_use():
        return load_sweep(file)


def examined(file: Path, python: str | None) -> Examined:
    """Everything that can be said of it before a night.

    Raises:
        SweepError: it is no sweep.
        Failure: the given Python is none.
    """
    from agent.sweeps.prepare import examine

    return examine(file, read_task=lambda path: _task(path, python), now=time.time())


def prepared_night(file: Path, python: str | None, *, home: Path | None) -> PreparedNight:
    """
    Args:
        home: where states of the code are put; None: nothing is written.

    Raises:
        Failure: no night can be made of it; all problems at once.
    """
    from agent.sweeps.prepare import prepare_night

    with _wrong_use():
        return prepare_night(file, read_task=lambda path: _task(path, python), now=time.time(), home=home)


def _task(path: Path, python: str | None) -> Task:
    return task_with_python(path, python=python)


@contextmanager
def _wrong_use() -> Iterator[None]:
    from agent.sweeps.sweep_file import SweepError

    try:
        yield
    except SweepError as error:
        path = error.problems[0].path if error.problems else None
        raise wrong_use(str(error), code="bad_sweep", path=path) from error
