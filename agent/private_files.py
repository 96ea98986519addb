"""What a task keeps from its training jobs: the scorer's own files (`score.private`), absolute once the file was read.

Those in the code's folder are part of no training's code; the scorer has them at their place in a copy of its own
(`agent.pinned_scorer`). Others stay where they are, and its job alone may read them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from agent.task import Score, Task

_OF_PATTERNS = frozenset("*?[]")


def private_in_code(task: Task) -> tuple[str, ...]:
    """Those in the code's folder, relative to it."""
    root = _root(task)
    if task.score is None or root is None:
        return ()
    return tuple(os.path.relpath(path, root) for path in task.score.private if _is_below(path, root))


def private_elsewhere(task: Task) -> tuple[str, ...]:
    """The absolute paths of the others."""
    root = _root(task)
    return () if task.score is None else tuple(p for p in task.score.private if root is None or not _is_below(p, root))


def moved_with_code(task: Task, root: str) -> Score | None:
    """The scorer where the task's code lies in another folder: its private files in the code lie there too."""
    if task.score is None:
        return None
    inside = tuple(os.path.join(root, path) for path in private_in_code(task))
    return task.score.model_copy(update={"private": (*inside, *private_elsewhere(task))})


def private_checks(task: Task) -> Iterator[tuple[str, str]]:
    """Path and message of each problem."""
    if task.score is None:
        return
    root = _root(task)
    shown = [] if task.code is None else [(f"code.readable.{at}", path) for at, path in enumerate(task.code.readable)]
    shown += [(f"data.{at}.path", data.path) for at, data in enumerate(task.data) if data.fingerprint != "label"]
    for at, path in enumerate(task.score.private):
        here = f"score.private.{at}"
        if _OF_PATTERNS & set(path):
            yield here, f"{path}: give names of files and folders, not patterns"
        elif not os.access(path, os.R_OK):
            yield here, f"{path} does not exist, or can not be read by this user"
        elif root is not None and (path == root or _is_below(root, path)):
            yield here, f"{path} holds the code, which the training has to read; name the scorer's own files in it"
        for name, other in shown:
            if _is_below(path, other) or path == other or _is_below(other, path):
                yield name, f"{other} is shown to the training, and score.private keeps {path} from it: part the two"


def _root(task: Task) -> str | None:
    return None if task.job.code_source is None else task.job.code_source.root_path


def _is_below(path: str, folder: str) -> bool:
    return path != folder and Path(path).is_relative_to(folder)
