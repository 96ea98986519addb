"""What the state says it counted, counted again from everything that was recorded, the slow way."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from core_properties import require

from runtime.model.events import (
    AttemptEnded,
    AttemptStarted,
    JobSubmitted,
    Recorded,
    StartOrdered,
    StopOrdered,
    Then,
)
from runtime.model.state import State
from runtime.model.states import AttemptOutcome, StopCause


@dataclass
class Counted:
    """Per job."""

    ran_s: Counter[str] = field(default_factory=Counter)
    n_retries: Counter[str] = field(default_factory=Counter)
    n_preemptions: Counter[str] = field(default_factory=Counter)


def count(recorded: Iterable[Recorded]) -> Counted:
    counted = Counted()
    started: dict[tuple[str, int], float] = {}
    causes: dict[tuple[str, int], set[StopCause]] = {}
    for entry in recorded:
        match entry.event:
            case AttemptStarted() as event:
                started.setdefault((event.job_id, event.attempt), entry.at_s)
            case StopOrdered() as event:
                causes.setdefault((event.job_id, event.attempt), set()).add(event.cause)
            case AttemptEnded() as event:
                key = (event.job_id, event.attempt)
                counted.ran_s[event.job_id] += entry.at_s - started.get(key, entry.at_s)
                counted.n_retries[event.job_id] += event.then is Then.RETRY
                is_preempted = StopCause.PREEMPT in causes.get(key, ()) and event.outcome is AttemptOutcome.PREEMPTED
                counted.n_preemptions[event.job_id] += is_preempted
    return counted


def check_usages(live: State, recorded: Sequence[Recorded]) -> None:
    """What projects held of late: each holding fades by half a day by day."""
    shapes: dict[str, tuple[tuple[str, int], int]] = {}
    began: dict[str, float] = {}
    holdings: list[tuple[tuple[str, int], int, float, float]] = []
    for entry in recorded:
        match entry.event:
            case JobSubmitted() as event:
                shapes[event.job.job_id] = ((event.job.project, event.job.priority), event.job.shape.n_devices)
            case StartOrdered() as event:
                began[event.job_id] = entry.at_s
            case AttemptEnded() as event:
                holdings.append((*shapes[event.job_id], began.pop(event.job_id), entry.at_s))
    now_s = live.clock_s
    holdings += [(*shapes[job_id], at_s, now_s) for job_id, at_s in began.items()]
    for key in {key for key, _ in shapes.values()}:
        mean = sum(
            n * (0.5 ** ((now_s - to_s) / 86400) - 0.5 ** ((now_s - from_s) / 86400))
            for name, n, from_s, to_s in holdings
            if name == key
        )
        usage = live.usages.parts.get(key)
        found = usage.mean_devices(now_s) if usage else 0.0
        require(math.isclose(found, mean, abs_tol=1e-9), "usage is what was held, faded", (key, found, mean))


def check_counts(live: State, recorded: Iterable[Recorded]) -> None:
    counted = count(entries := tuple(recorded))
    check_usages(live, entries)
    for job_id, job in live.jobs.items():
        require(job.ran_s == counted.ran_s[job_id], "running time is counted over all attempts", job_id)
        require(job.n_retries == counted.n_retries[job_id], "only a failure costs a retry", job_id)
        require(job.n_preemptions == counted.n_preemptions[job_id], "only a preemption counts as one", job_id)
