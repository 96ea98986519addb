"""Who held which slot when, for whom somebody stepped aside, and how busy the slots were. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from agent.store.views import Purpose, TrialView
from runtime_client.models import AttemptView, JobView, MetricPoint


class Holder(StrEnum):
    """What a slot was held for."""

    SEARCH = "search"
    REPLICATE = "replicate"
    HELD_OUT = "held_out"
    OTHER = "other"
    """A job of somebody else, such as the one that others were preempted for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One attempt on one device, from the lease to the proof that it is gone. Times: seconds since the epoch."""

    node_id: str
    device: int
    job_id: str
    attempt: int
    holder: Holder
    priority_class: str
    trial_number: int | None
    """None: not a trial of this session."""
    start: float
    end: float
    """The present, for an attempt that goes on."""
    stop_ordered_at: float | None
    outcome: str | None
    """None: goes on."""
    beneficiary: str | None
    resumed_step: int | None
    """Checkpoint it went on from; None: started from nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preemption:
    """One attempt that stepped aside, and what became of its job."""

    job_id: str
    attempt: int
    trial_number: int | None
    beneficiary: str | None
    ordered_at: float
    left_at: float | None
    checkpoint_step: int | None
    """Newest complete checkpoint when it left."""
    resumed_attempt: int | None
    """The attempt that went on; None: not yet."""
    resumed_at: float | None
    run_id: str
    """The MLflow run, the same for all attempts of a job."""
    state: str
    """Of the job, now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotUse:
    """How busy the slots were, in device-seconds between the first start and the last end."""

    n_devices: int
    span_s: float
    leased_s: float
    """Devices held by attempts."""
    user_s: float
    """Between the first and the last metric of each attempt."""

    @property
    def leased_share(self) -> float | None:
        """0 to 1; None when nothing ran."""
        return self._share(self.leased_s)

    @property
    def user_share(self) -> float | None:
        return self._share(self.user_s)

    def _share(self, seconds: float) -> float | None:
        capacity = self.n_devices * self.span_s
        return min(1.0, seconds / capacity) if capacity > 0 else None


HOLDER_OF = {
    Purpose.SEARCH: Holder.SEARCH,
    Purpose.REPLICATE: Holder.REPLICATE,
    Purpose.HELD_OUT: Holder.HELD_OUT,
    Purpose.RUNG: Holder.REPLICATE,
}


def segments(jobs: Sequence[JobView], trials: Sequence[TrialView], *, now: float) -> tuple[Segment, ...]:
    """One per attempt and device, ordered by start."""
    trial_of = {job_id: t for t in trials for job_id in t.trained_by}
    found = []
    for job in jobs:
        trial = trial_of.get(job.job_id)
        resumed: int | None = None
        for attempt in job.attempts:
            found.extend(_segments_of(job, attempt, trial, resumed, now))
            resumed = attempt.checkpoint_step if attempt.checkpoint_step is not None else resumed
    return tuple(sorted(found, key=lambda s: (s.start, s.node_id, s.device)))


def _segments_of(
    job: JobView, attempt: AttemptView, trial: TrialView | None, resumed: int | None, now: float
) -> list[Segment]:
    return [
        Segment(
            node_id=place.node_id,
            device=device,
            job_id=job.job_id,
            attempt=attempt.attempt,
            holder=Holder.OTHER if trial is None else HOLDER_OF[trial.purpose],
            priority_class=job.spec.priority_class,
            trial_number=None if trial is None else trial.number,
            start=attempt.ordered_at,
            end=max(attempt.ordered_at, now if attempt.ended_at is None else attempt.ended_at),
            stop_ordered_at=attempt.stop_ordered_at,
            outcome=attempt.outcome,
            beneficiary=attempt.beneficiary,
            resumed_step=resumed,
        )
        for place in attempt.placements
        for device in place.devices
    ]


def preemptions(jobs: Sequence[JobView], trials: Sequence[TrialView]) -> tuple[Preemption, ...]:
    """Every preemption that was ordered, in the order of the orders."""
    numbers = {job_id: t.number for t in trials for job_id in t.trained_by}
    found = []
    for job in jobs:
        step: int | None = None
        for at, attempt in enumerate(job.attempts):
            step = attempt.checkpoint_step if attempt.checkpoint_step is not None else step
            asked_at = attempt.ended_at if attempt.stop_ordered_at is None else attempt.stop_ordered_at
            if attempt.stop_cause != "preempt" or asked_at is None:
                continue
            later = job.attempts[at + 1] if at + 1 < len(job.attempts) else None
            found.append(
                Preemption(
                    job_id=job.job_id,
                    attempt=attempt.attempt,
                    trial_number=numbers.get(job.job_id),
                    beneficiary=attempt.beneficiary,
                    ordered_at=asked_at,
                    left_at=attempt.ended_at,
                    checkpoint_step=step,
                    resumed_attempt=None if later is None else later.attempt,
                    resumed_at=None if later is None else later.started_at,
                    run_id=job.run_id,
                    state=job.state,
                )
            )
    return tuple(sorted(found, key=lambda p: p.ordered_at))


def slot_use(held: Sequence[Segment], points: Mapping[str, Sequence[MetricPoint]], *, n_devices: int) -> SlotUse:
    """Source: the definition of "slots busy" in docs: leased device-seconds over devices times span."""
    if not held:
        return SlotUse(n_devices=n_devices, span_s=0.0, leased_s=0.0, user_s=0.0)
    spans = _user_spans(points)
    first, last = min(s.start for s in held), max(s.end for s in held)
    return SlotUse(
        n_devices=n_devices,
        span_s=last - first,
        leased_s=sum(s.end - s.start for s in held),
        user_s=sum(spans.get((s.job_id, s.attempt), 0.0) for s in held),
    )


def _user_spans(points: Mapping[str, Sequence[MetricPoint]]) -> dict[tuple[str, int], float]:
    """Seconds between the first and the last metric, by job and attempt."""
    seen: dict[tuple[str, int], tuple[float, float]] = {}
    for job_id, of_job in points.items():
        for point in of_job:
            first, last = seen.get((job_id, point.attempt), (point.at, point.at))
            seen[job_id, point.attempt] = (min(first, point.at), max(last, point.at))
    return {key: last - first for key, (first, last) in seen.items()}
