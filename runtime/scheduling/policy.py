"""What an operator can set about scheduling. Defaults are the ones documented in docs/scheduling.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorityClass:
    name: str
    priority: int
    """Higher wins; strictly: only a strictly higher class preempts."""
    is_preemptible: bool
    """What a job of this class is unless it says otherwise."""


DEFAULT_CLASSES: Mapping[str, PriorityClass] = MappingProxyType(
    {
        "critical": PriorityClass(name="critical", priority=1000, is_preemptible=False),
        "normal": PriorityClass(name="normal", priority=500, is_preemptible=True),
        "exploratory": PriorityClass(name="exploratory", priority=100, is_preemptible=True),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    classes: Mapping[str, PriorityClass] = field(default_factory=lambda: DEFAULT_CLASSES)
    min_run_s: float = 0.0
    """An attempt younger than this is no victim."""
    max_stalled: int = 3
    """Restarts without a newer checkpoint that end a job."""
    retry_backoff_s: float = 5.0
    """Doubles with each retry, up to `retry_backoff_max_s`."""
    retry_backoff_max_s: float = 300.0
