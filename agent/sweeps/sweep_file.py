"""Reading a sweep file: YAML to `Sweep`, every problem named by its path. What the tasks say is not read here."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from agent.sweeps.sweep import Sweep
from agent.task_file import DocumentError, explained, read_text, read_yaml


class SweepError(DocumentError):
    what = "sweep"
    keys = "sweep, task, method"


def load_sweep(path: Path) -> Sweep:
    """Read and check a sweep file.

    Raises:
        SweepError: unreadable, not YAML, unknown keys, impossible values; all problems at once.
    """
    data = read_yaml(read_text(path, SweepError), path, SweepError)
    try:
        return Sweep.model_validate(data)
    except ValidationError as error:
        raise SweepError(path, explained(error.errors(), data, Sweep)) from error
