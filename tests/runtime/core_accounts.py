"""What the state says it counted, counted again from everything that was recorded, the slow way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from core_properties import require

from runtime.model.events import AttemptEnded, AttemptStarted, Recorded, StopOrdered, Then
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


def check_counts(live: State, recorded: Iterable[Recorded]) -> None:
    counted = count(recorded)
    for job_id, job in live.jobs.items():
        require(job.ran_s == counted.ran_s[job_id], "running time is counted over all attempts", job_id)
        require(job.n_retries == counted.n_retries[job_id], "only a failure costs a retry", job_id)
        require(job.n_preemptions == counted.n_preemptions[job_id], "only a preemption counts as one", job_id)
