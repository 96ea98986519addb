"""How long jobs are expected to run, learned from those that ended well. Pure.

A job is expected to run as long as the recent jobs of its project, experiment and shape did; where there are too few
of them, as those of its experiment; else nothing is known. A declared time limit is a bound, never an estimate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from .nouns import Job, Shape

N_KEPT = 32
"""Run times remembered per kind of job; older ones are forgotten, so that an estimate follows what changes."""
N_LEAST = 3
"""Run times that make an estimate."""
N_KINDS = 4096
"""Kinds of job remembered; those that ended longest ago are forgotten."""
QUANTILE = 0.5
"""Robust against a few jobs that crashed early or hung; a job that outlives it is expected to take twice as long."""


class Kind(NamedTuple):
    """Jobs that are expected to run equally long."""

    project: str
    experiment: str
    shape: Shape | None
    """None: any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """One kind of job in a snapshot."""

    project: str
    experiment: str
    shape: Shape | None
    run_times: tuple[float, ...]


@dataclass(slots=True, kw_only=True)
class Estimates:
    """What is remembered of finished jobs; bounded."""

    run_times: dict[Kind, tuple[float, ...]] = field(default_factory=dict)
    """Seconds of work of the last jobs that succeeded, oldest first. Kinds in the order in which they were learned."""
    _expected: dict[Kind, float | None] = field(default_factory=dict, compare=False, repr=False)
    """A memo."""

    def learn(self, job: Job, run_s: float) -> None:
        """Remember what a job needed in all, over all its attempts."""
        for shape in (None, job.shape):
            kind = Kind(job.project, job.experiment, shape)
            self.run_times[kind] = (*self.run_times.pop(kind, ()), run_s)[-N_KEPT:]
            self._expected.pop(kind, None)
        while len(self.run_times) > N_KINDS:
            oldest = next(iter(self.run_times))
            del self.run_times[oldest]
            self._expected.pop(oldest, None)

    def expected_s(self, project: str, experiment: str, shape: Shape) -> float | None:
        """What such a job needs in all; None: nothing is known."""
        exact = self._of(Kind(project, experiment, shape))
        return self._of(Kind(project, experiment, None)) if exact is None else exact

    def remembered(self) -> Iterator[Learned]:
        """All of it, for a snapshot."""
        for kind, run_times in self.run_times.items():
            yield Learned(project=kind.project, experiment=kind.experiment, shape=kind.shape, run_times=run_times)

    def remember(self, learned: Iterable[Learned]) -> None:
        """Take over what a snapshot holds."""
        for entry in learned:
            self.run_times[Kind(entry.project, entry.experiment, entry.shape)] = entry.run_times

    def _of(self, kind: Kind) -> float | None:
        if kind not in self.run_times:
            return None
        if kind not in self._expected:
            self._expected[kind] = quantile(self.run_times[kind])
        return self._expected[kind]


def quantile(run_times: tuple[float, ...]) -> float | None:
    """The estimate from these; None: they are too few."""
    if len(run_times) < N_LEAST:
        return None
    return sorted(run_times)[int(QUANTILE * (len(run_times) - 1))]


def remaining_s(expected_s: float, done_s: float) -> float:
    """What is left of a job; one that has outlived its estimate is expected to take twice as long, again and again."""
    total_s = max(expected_s, 1.0)
    while total_s <= done_s:
        total_s *= 2.0
    return total_s - done_s


def rounded_down(done_s: float) -> float:
    """The power of two below; 0 below one second. Jobs that have done about as much share a lane."""
    return float(1 << (int(done_s).bit_length() - 1)) if done_s >= 1.0 else 0.0
