"""Which world a text names: `synthetic:sphere`, or a file."""

from __future__ import annotations

from pathlib import Path

from agent.task import Task

from .recorded import RecordedWorld
from .synthetic import SyntheticWorld
from .world import World

SYNTHETIC = "synthetic:"


def open_world(text: str, task: Task) -> World:
    """
    Raises:
        BadWorld: there is no such world, or it does not know the task's parameters.
    """
    if text.startswith(SYNTHETIC):
        return SyntheticWorld(text.removeprefix(SYNTHETIC), task)
    return RecordedWorld(Path(text).expanduser(), task)
