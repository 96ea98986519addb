"""What a task says of code trials that contradicts itself, or that nothing would come of."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from agent.code_trials import CODER
from agent.command_words import command_words
from agent.task import Model, Task

_MOST_LOOKED_AT = 1_000_000
"""Bytes of a file."""


def code_checks(task: Task) -> Iterator[tuple[str, str]]:
    """Path and message of each problem."""
    used = set(task.search.use)
    if task.code is None:
        if CODER in used:
            what = "is required: search.use names coder; add code: {editable: [FILE, ...]}, or take it out of use"
            yield "code", what
        if not task.space:
            yield "space", "is required: without parameters, and without `code`, there is nothing to try"
        return
    if not used & {CODER, "outside"}:
        use = ", ".join([*task.search.use, CODER])
        yield "code", f"nobody would edit: let a model do so, as search.use: [{use}], or outside agents, with outside"
    if CODER in used and (task.model is None or task.model.rung == "menu"):
        what = "edits come from a language model that writes text: give `model` with a name, and no rung of menu"
        yield "model", what
    if CODER in used and task.model is not None:
        yield from _room_checks(task, task.model)
    if task.search.points and not task.space:
        yield "search.points", "points of no parameters are all the same; leave them out"
    if task.score is None:
        what = (
            "is required with `code`: what edited code says of itself is no measurement. Give a command that measures "
            "what the training left, as score: {command: python score.py}; see docs/code-trials.md"
        )
        yield "score", what
    yield from _editable_checks(task)


def _editable_checks(task: Task) -> Iterator[tuple[str, str]]:
    assert task.code is not None
    root = task.job.code_source.root_path if task.job.code_source else None
    measures = set() if task.score is None else {posixpath.normpath(word) for word in command_words(task.score.command)}
    for at, pattern in enumerate(task.code.editable):
        path = f"code.editable.{at}"
        is_inside = pattern and not pattern.startswith(("/", "~")) and ".." not in pattern.split("/")
        if not is_inside or "\0" in pattern or pattern.split("/")[0] == ".git":
            yield path, f"{pattern!r}: give files of the code, relative to its folder"
        elif root is not None and Path(root).is_dir() and not _matches(Path(root), pattern):
            yield path, f"{pattern!r} matches no file below {root}"
        for word in sorted(measures):
            if is_inside and fnmatchcase(word, posixpath.normpath(pattern)):
                yield path, f"{pattern!r} covers {word}, which measures (score.command): it may not be edited"


def _room_checks(task: Task, model: Model) -> Iterator[tuple[str, str]]:
    """The editable files have to fit into the model, at least their definitions, else it is never asked."""
    from agent.coding.room import LEAST_FRAME_TOKENS, edit_prompt_limit
    from agent.coding.showing import shown

    assert task.code is not None
    root = Path(task.job.code_source.root_path) if task.job.code_source else None
    if root is None or not root.is_dir():
        return
    sources = _sources(root, task.code.editable)
    limit = edit_prompt_limit(task, model)
    if sources and shown(sources, limit=limit - LEAST_FRAME_TOKENS, turn=0) is None:
        what = (
            f"{limit:,} tokens are left for a question, and the files that may be edited ({len(sources)}) do not fit "
            "into that, not even their definitions; give model.context_tokens, where more fits into the model, or name "
            "fewer files in code.editable"
        )
        yield "model.context_tokens", what


def _sources(root: Path, patterns: Iterable[str]) -> dict[str, bytes]:
    """What the patterns name; of a giant file its beginning, which does not fit either."""
    try:
        found = {path for pattern in patterns for path in root.glob(pattern) if path.is_file()}
        return {str(path.relative_to(root)): _beginning(path) for path in found}
    except (ValueError, NotImplementedError, OSError):
        return {}


def _beginning(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_MOST_LOOKED_AT)


def _matches(root: Path, pattern: str) -> bool:
    try:
        return any(found.is_file() for found in root.glob(pattern))
    except (ValueError, NotImplementedError, OSError):
        return False
