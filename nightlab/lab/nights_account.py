"""What became of nights that were lived through: deadlines, overlaps, trials, and what people waited. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from agent.store.views import SessionState, TrialState, TrialView
from agent.sweeps.views import NightOutcome, NightView
from runtime_client.models import JobView

from .nights import Days, LivedNights, Span
from .people import PersonsJob

WAKE_S = 30.0
"""A machine that slept over the hour gives what ran then so long to checkpoint and leave, after it has woken."""
DAY_S = 12 * 3600.0
EPSILON_S = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class NightsAccount:
    """Each fault in words, with its night, trial or job; empty: there was none."""

    n_nights: int
    """That were begun."""
    n_skipped: int
    late: tuple[str, ...]
    """Nights of which something ran or waited at their hour."""
    overlaps: tuple[str, ...]
    """Nights that were begun before the one before had ended, or left something when they ended."""
    lost: tuple[str, ...]
    """Trials that were begun and neither have a value nor wait to go on."""
    doubled: tuple[str, ...]
    """Trials that were made or done twice."""
    n_trials: int
    n_continued: int
    """Trials that went on in a later night."""
    device_hours: float

    @property
    def n_kept(self) -> int:
        return self.n_nights - len(self.late)


def account(lived: LivedNights, days: Days, *, hours: Sequence[float]) -> NightsAccount:
    """
    Args:
        hours: when people want their machine back, each morning's instant, in order.
    """
    begun = [night for night in lived.nights if night.outcome is not NightOutcome.SKIPPED]
    jobs_of = _by_night(lived.jobs, begun)
    return NightsAccount(
        n_nights=len(begun),
        n_skipped=len(lived.nights) - len(begun),
        late=tuple(words for night in begun if (words := _late(night, jobs_of[night.night_id], days, hours))),
        overlaps=(*_overlaps(begun), *_left(begun, jobs_of)),
        lost=_lost(lived),
        doubled=_doubled(lived),
        n_trials=len(lived.trials),
        n_continued=sum(1 for trial in lived.trials if trial.facts.continues),
        device_hours=sum(job.device_seconds(job.ended_at or days.span.end) for job in lived.jobs) / 3600.0,
    )


def _by_night(jobs: Sequence[JobView], begun: Sequence[NightView]) -> dict[str, list[JobView]]:
    """Each job with the night that was the newest when it was submitted."""
    found: dict[str, list[JobView]] = {night.night_id: [] for night in begun}
    for job in jobs:
        before = [night for night in begun if night.created_at <= job.submitted_at]
        found[before[-1].night_id].append(job)
    return found


def _late(night: NightView, jobs: Sequence[JobView], days: Days, hours: Sequence[float]) -> str | None:
    hour = next((at for at in hours if at > night.created_at), None)
    if hour is None:
        return None
    away = _away(days, hour)
    limit = hour if away is None else away.end + WAKE_S
    late = [job.job_id for job in jobs if job.ended_at is None or job.ended_at > limit + EPSILON_S]
    if not late:
        return None
    return f"{night.night_id}: {len(late)} of {len(jobs)} jobs ran or waited at its hour, {late[0]} for one"


def _overlaps(begun: Sequence[NightView]) -> list[str]:
    return [
        f"{after.night_id} began while {before.night_id} still ran"
        for before, after in pairwise(begun)
        if before.ended_at is None or after.created_at < before.ended_at
    ]


def _left(begun: Sequence[NightView], jobs_of: Mapping[str, Sequence[JobView]]) -> list[str]:
    """Jobs that a night left behind."""
    return [
        f"{night.night_id} had ended when {job.job_id} still was there"
        for night in begun
        for job in jobs_of[night.night_id]
        if night.ended_at is not None and (job.ended_at is None or job.ended_at > night.ended_at + EPSILON_S)
    ]


def _lost(lived: LivedNights) -> tuple[str, ...]:
    """Whatever was begun has its value, or waits for the next night that goes on with it."""
    states = {session.session_id: session.state for session in lived.sessions}
    done = _done(lived.jobs)
    return tuple(
        f"{trial.trial_id}: {trial.state.value}, {trial.note or 'its job is done and was not read'}"
        for trial in lived.trials
        if trial.state is TrialState.INVALID
        or (trial.state is not TrialState.MEASURED and done[trial.trial_id] > 0)
        or (not trial.is_ended and states[trial.session_id] is SessionState.FINISHED)
    )


def _doubled(lived: LivedNights) -> tuple[str, ...]:
    same = Counter(_key(trial) for trial in lived.trials)
    twice = [f"{trial.trial_id} was made {same[_key(trial)]} times" for trial in lived.trials if same[_key(trial)] > 1]
    again = [f"{trial_id} was done {n} times" for trial_id, n in _done(lived.jobs).items() if n > 1]
    return (*twice, *again)


def _key(trial: TrialView) -> tuple[str, str, int]:
    return trial.session_id, trial.configuration, trial.seed


def _done(jobs: Sequence[JobView]) -> Counter[str]:
    """How many jobs of each trial have done its training to the end."""
    return Counter(
        job.spec.tags["nightlab.trial"]
        for job in jobs
        if job.state == "succeeded" and "nightlab.score_of" not in job.spec.tags
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """What nights cost the critical jobs of people: the wait with nights less the wait without, in seconds."""

    n_by_day: int
    worst_by_day_s: float
    n_woken: int
    worst_woken_s: float
    """Of those that came while the machine was away over its hour, or on the day after that: what came meanwhile is
    there at once when it is back, beside trials that checkpoint, and short work goes first."""
    n_by_night: int
    worst_by_night_s: float
    not_started: tuple[str, ...]
    """Jobs that started without the nights and not with them."""


def delay(days: Days, hours: Sequence[float], waits: Mapping[str, float], control: Mapping[str, float]) -> Delay:
    """
    Args:
        hours: as in `account`.
        waits: seconds by the name of the job, with the nights.
        control: the same without them.
    """
    critical = [job for job in days.people if job.priority_class == "critical" and job.name in control]
    found: dict[str, list[float]] = {"by_day": [], "woken": [], "by_night": []}
    for job in critical:
        if job.name in waits:
            found[_kind(job, days, hours)].append(waits[job.name] - control[job.name])
    return Delay(
        n_by_day=len(found["by_day"]),
        worst_by_day_s=max(found["by_day"], default=0.0),
        n_woken=len(found["woken"]),
        worst_woken_s=max(found["woken"], default=0.0),
        n_by_night=len(found["by_night"]),
        worst_by_night_s=max(found["by_night"], default=0.0),
        not_started=tuple(job.name for job in critical if job.name not in waits),
    )


def _kind(job: PersonsJob, days: Days, hours: Sequence[float]) -> str:
    away = [(span, hour) for hour in hours if (span := _away(days, hour))]
    if any(span.begin <= job.at < hour + DAY_S for span, hour in away):
        return "woken"
    return "by_day" if job.is_by_day else "by_night"


def _away(days: Days, hour: float) -> Span | None:
    """When the machine slept or was killed over that instant."""
    return next((span for span in (*days.sleeps, *days.kills) if span.has(hour)), None)
