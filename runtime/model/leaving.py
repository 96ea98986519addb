"""How long attempts take to leave after a notice, learned from those that left; and the grace that follows. Pure.

What is measured is what the grace has to cover: the rest of a step, and a checkpoint. The grace that a job asks for is
the least it gets; one that was killed for want of time is given twice as much the next time.
"""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from .events import AttemptEnded
from .nouns import Job
from .states import EXIT_REQUEUE, LEAVING, StopCause

N_KEPT = 16
"""Departures remembered per experiment."""
N_EXPERIMENTS = 4096
"""Experiments remembered; those that left longest ago are forgotten."""
ALLOWANCE = 1.5
"""A grace is this times the longest departure that is remembered."""
GRACE_MAX_S = 300.0
"""A learned grace is never longer; one that a job asks for may be."""
KILL_S = 2.0
"""How long an attempt may still be there after its grace: the kill, and the look that sees that it is gone."""
_TELLING = LEAVING | {StopCause.BUDGET, StopCause.DEADLINE}
"""Causes for which an attempt gets a notice to checkpoint, whatever becomes of its job."""
_CLEAN = frozenset({0, EXIT_REQUEUE})
_KILLED = frozenset({-signal.SIGKILL, 128 + signal.SIGKILL})


class Experiment(NamedTuple):
    project: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Departures:
    """Those of one experiment in a snapshot."""

    project: str
    experiment: str
    seconds: tuple[float, ...]


@dataclass(slots=True, kw_only=True)
class Leaving:
    """What is remembered; bounded."""

    seconds: dict[Experiment, tuple[float, ...]] = field(default_factory=dict)
    """From the notice to the end, oldest first. Experiments in the order in which they last left."""

    def learn(self, job: Job, event: AttemptEnded, at_s: float) -> None:
        """Remember how long the present attempt took, if it was asked to leave and did, or was killed for its grace."""
        stop = job.attempt.stop if job.attempt is not None else None
        if stop is None or stop.cause not in _TELLING or event.exit_code is None:
            return
        took_s = max(0.0, at_s - stop.ordered_at_s)
        if event.exit_code in _KILLED and took_s >= stop.grace_s > 0.0:
            took_s = 2.0 * stop.grace_s / ALLOWANCE
        elif event.exit_code not in _CLEAN:
            return
        key = Experiment(job.project, job.experiment)
        self.seconds[key] = (*self.seconds.pop(key, ()), took_s)[-N_KEPT:]
        while len(self.seconds) > N_EXPERIMENTS:
            del self.seconds[next(iter(self.seconds))]

    def longest_s(self, job: Job) -> float | None:
        """The longest that jobs like it took lately; None: none has left yet."""
        return self.longest_of(Experiment(job.project, job.experiment))

    def longest_of(self, experiment: Experiment) -> float | None:
        """The same of an experiment."""
        return max(self.seconds.get(experiment, ()), default=None)

    def remembered(self) -> Iterator[Departures]:
        """All of it, for a snapshot."""
        for key, seconds in self.seconds.items():
            yield Departures(project=key.project, experiment=key.name, seconds=seconds)

    def remember(self, departures: Iterable[Departures]) -> None:
        """Take over what a snapshot holds."""
        for each in departures:
            self.seconds[Experiment(each.project, each.experiment)] = each.seconds


def grace_of(job: Job) -> float:
    """Seconds that its present attempt gets after a notice. A job that asks for none gets none."""
    return grace_after(job.grace_s, job.attempt.leave_s if job.attempt is not None else None)


def grace_after(asked_s: float, leave_s: float | None) -> float:
    """The grace of an attempt that asks for so much, where the longest that attempts like it took to leave is this."""
    if leave_s is None or asked_s == 0.0:
        return asked_s
    return max(asked_s, min(GRACE_MAX_S, ALLOWANCE * leave_s))
