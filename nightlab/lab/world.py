"""What jobs do in the lab: a `World` tells for each submission how it goes and ends, and knows the truth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from agent.store.views import ParamValue
from runtime_client.models import JobSpec


class LabError(Exception):
    """The lab can not do what it was asked for; `message` says what to change."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class BadWorld(LabError):
    """A world that does not exist, can not be read, or does not know what the task asks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """What a job does undisturbed."""

    run_s: float
    """From its first start to its end, in virtual seconds."""
    curves: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Values by metric, logged at equal distances, the last one at the end."""
    exit_code: int = 0
    output: str = ""
    """The end of what it prints; the runtime reads from it why it failed."""
    peak_memory_mb: float | None = None
    """Most memory that its attempts hold at once, in MiB; None: nobody knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """The truth of the best and of the worst configuration, for regret."""

    best: float
    worst: float

    def regret(self, truth: float) -> float:
        """0: the best there is; 1: the worst."""
        span = self.worst - self.best
        return (truth - self.best) / span if span else 0.0


class World(Protocol):
    """Same submission, same course: a world has no clock and no memory."""

    @property
    def name(self) -> str: ...

    @property
    def extent(self) -> Extent: ...

    def course(self, spec: JobSpec, draw: int) -> Course:
        """
        Args:
            draw: Which of many equal worlds: the same truth, other noise.
        """
        ...

    def truth(self, params: Mapping[str, ParamValue]) -> float | None:
        """The mean of the objective over seeds; None: it never gives a value."""
        ...
