"""What a job that ran out of memory could change before it is run again. Pure; a proposal, never done by itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from .states import ExitReason

_BATCH = re.compile(r"(^|[_.])(batch(_?size)?|bs|bsz|n_batch|samples_per_gpu)$", re.IGNORECASE)
_LENGTH = re.compile(
    r"(^|[_.])(max_?(seq(uence)?_?)?len(gth)?|seq(uence)?_?len(gth)?|block_size|context_?(length|size)|n_ctx)$",
    re.IGNORECASE,
)
_WORKERS = re.compile(r"(^|[_.])(num_?workers|n_workers|dataloader_num_workers)$", re.IGNORECASE)
_BY_REASON: Mapping[ExitReason, tuple[re.Pattern[str], ...]] = {
    ExitReason.OUT_OF_MEMORY_DEVICE: (_BATCH, _LENGTH),
    ExitReason.OUT_OF_MEMORY_HOST: (_WORKERS, _BATCH),
}
"""Which parameters to make smaller, the gentlest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    change: str
    """The parameter; parts of nested ones are joined by dots."""
    factor: float
    old: float
    new: float
    why: str


def suggest(reason: ExitReason | None, parameters: Mapping[str, object]) -> Suggestion | None:
    """The one change that helps most often; None: nothing in the parameters looks like it."""
    if reason is None:
        return None
    for pattern in _BY_REASON.get(reason, ()):
        for name, value in _flat(parameters, ""):
            if pattern.search(name) and isinstance(value, int) and not isinstance(value, bool) and value > 1:
                why = f"{reason.replace('_', ' ')}: halve {name} ({value} to {value // 2}) before the next attempt"
                return Suggestion(change=name, factor=0.5, old=value, new=value // 2, why=why)
    return None


def _flat(parameters: Mapping[str, object], prefix: str) -> Iterator[tuple[str, object]]:
    for name, value in parameters.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
