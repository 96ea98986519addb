"""What can be wrong with a simulation that somebody asked for. Each message says what to do."""

from __future__ import annotations

from pathlib import Path


class SimulationError(Exception):
    """The simulation can not be run as asked; `message` is for the person who asked."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class BadTrace(SimulationError):
    """A trace, a node list or a policy file that can not be read as what it was said to be."""

    def __init__(self, path: Path, why: str, *, line: int | None = None) -> None:
        where = str(path) if line is None else f"{path}, line {line}"
        super().__init__(f"{where}: {why}")


class BadScenario(SimulationError):
    """Options that do not go together, or have a value that means nothing."""
