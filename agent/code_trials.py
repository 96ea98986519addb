"""The part of a task that lets trials change the training code, and within what bounds."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from agent.task_part import TaskPart

CODER = "coder"
"""Name of the arm that edits code, as in `search.use`."""


class CodeTrials(TaskPart):
    """Trials may change these files, each in a copy of its own; the code in `job.code_source` is never touched."""

    editable: tuple[str, ...] = Field(min_length=1, max_length=100)
    """Files, or patterns of files (`models/*.py`), below the code's folder. Nothing else may change."""
    sandbox: Literal["sealed", "user"] = "sealed"
    """Of all training jobs of the session. `user` runs code that nobody has read with your rights: see
    docs/sandbox.md."""
    readable: tuple[str, ...] = Field(default=(), max_length=200)
    """Files and folders that sealed training jobs may read besides their code, relative to the task file. What `data`
    names is readable by itself."""
    max_changed_lines: int = Field(default=400, ge=1, le=100_000)
    """Of one trial against the session's base, added and removed ones together."""
    per_line: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """Gain, in the metric's units, that each further changed line has to bring for the larger change to be chosen."""
    max_slowdown: float | None = Field(default=1.5, gt=0, allow_inf_nan=False)
    """A training that takes more than so many times as long as the base's is invalid: it may have trained longer. None:
    any time is right."""
