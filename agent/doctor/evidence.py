"""What is looked at to find out why a job failed. Data alone: `agent.doctor.gather` reads it, tests write it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from runtime_client.models import LogErrors


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Of a job that has ended, about its last attempt."""

    exit_reason: str | None
    """As the runtime names it, `code_error`; it is from what the runtime knows first and from the output second."""
    exit_code: int | None = None
    """None: unknown; negative: killed by that signal."""
    line: str | None = None
    """The line that the runtime kept for it, `rank 3: ValueError: bad (train.py:33)`."""
    state_reason: str | None = None
    """In words, where the runtime has some."""
    earlier: tuple[str, ...] = ()
    """Exit reasons of the attempts before it, oldest first."""
    output: LogErrors | None = None
    """Error lines and ends of the output; None: there was none, or it could not be read."""
    wanted_metric: str | None = None
    """The metric that counts; None: not known."""
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    """Last value of each metric; None: NaN or infinite."""
    peak_memory_mb: float | None = None
    memory_mb: float | None = None
    """What it could have at most: its own limit, else what its machine has; None: not known."""
