"""Which devices a class had others give up lately; a rate limit is made of it. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from .nouns import Job

WINDOW_S = 3600.0
"""Older ones are forgotten."""
N_KEPT = 512
"""Remembered for each class."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Eviction:
    at_s: float
    n_devices: int


def with_eviction(earlier: tuple[Eviction, ...], victim: Job, at_s: float) -> tuple[Eviction, ...]:
    """The same with one more victim, and without what is too old."""
    kept = (one for one in earlier if at_s - one.at_s < WINDOW_S)
    return (*kept, Eviction(at_s=at_s, n_devices=victim.shape.n_devices))[-N_KEPT:]
