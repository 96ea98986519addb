"""What a session of the lab came to, held against the truth that only the world knows. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from agent.planner.configuration import default_params
from agent.planner.objective import gain
from agent.store.views import FinalResult, ParamValue, TrialState
from agent.task import Task

from .sessions import Lived
from .world import World

CLAIM = "supported"
"""The verdict that claims a gain over the default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One session, and what was true. Values are in the metric's units."""

    draw: int
    session_id: str
    state: str
    verdict: str | None
    """None: it ended without a result."""
    best: Mapping[str, ParamValue] | None
    """The configuration that it chose."""
    said: float | None
    """What it says about the mean of that configuration."""
    truth: float | None
    """That mean; None: it chose none, or one that gives no value."""
    default_truth: float | None
    regret: float | None
    """0: the best there is; 1: the worst. None as `truth`."""
    claims: int
    """Gains over the default that it claims."""
    false_claims: int
    """Those of them that are none."""
    true_gain: float | None
    """Of a true claim: the gain, positive is better. None: there is none."""
    optimism: float | None
    """How much better it says its best is than it is, as a share of the range."""
    n_trials: int
    n_invalid: int
    device_hours: float
    span_s: float
    busy_percent: float
    """Device time that its jobs held, over all devices from its first submission to its end."""
    n_preemptions: int
    message: str


def found_by(lived: Lived, task: Task, world: World, *, n_devices: int) -> Found:
    result = lived.session.result
    truth = None if result is None else world.truth(result.best)
    default_truth = world.truth(default_params(task))
    held_s = math.fsum(job.device_seconds(job.ended_at or job.submitted_at) for job in lived.jobs)
    true_gain = _true_gain(result, truth, default_truth, task)
    n_claims = int(result is not None and result.verdict == CLAIM)
    return Found(
        draw=lived.draw,
        session_id=lived.session.session_id,
        state=lived.session.state.value,
        verdict=None if result is None else result.verdict,
        best=None if result is None else result.best,
        said=_said(result),
        truth=truth,
        default_truth=default_truth,
        regret=None if truth is None else world.extent.regret(truth),
        claims=n_claims,
        false_claims=n_claims if true_gain is None else 0,
        true_gain=true_gain,
        optimism=_optimism(_said(result), truth, task, world),
        n_trials=len(lived.trials),
        n_invalid=sum(1 for trial in lived.trials if trial.state is TrialState.INVALID),
        device_hours=held_s / 3600,
        span_s=lived.span_s,
        busy_percent=100 * held_s / (n_devices * lived.span_s) if lived.span_s else 0.0,
        n_preemptions=sum(job.n_preemptions for job in lived.jobs),
        message=lived.session.message,
    )


def _said(result: FinalResult | None) -> float | None:
    return None if result is None or result.best_mean is None else result.best_mean.estimate


def _true_gain(
    result: FinalResult | None, truth: float | None, default_truth: float | None, task: Task
) -> float | None:
    """A claim is true when the truth of what was found is better than the default's by more than `min_effect`."""
    if result is None or result.verdict != CLAIM or truth is None or default_truth is None:
        return None
    found = gain(truth, default_truth, task.objective.direction)
    return found if found > task.objective.min_effect else None


def _optimism(said: float | None, truth: float | None, task: Task, world: World) -> float | None:
    span = abs(world.extent.best - world.extent.worst)
    if said is None or truth is None or span == 0:
        return None
    return gain(said, truth, task.objective.direction) / span


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Median and quartiles of what the sessions show; None: no session shows it."""

    median: float | None
    low: float | None
    high: float | None

    @classmethod
    def of(cls, values: Sequence[float | None]) -> Spread:
        known = sorted(value for value in values if value is not None)
        if not known:
            return cls(median=None, low=None, high=None)
        quartiles = statistics.quantiles(known, n=4, method="inclusive") if len(known) > 1 else known * 3
        return cls(median=statistics.median(known), low=quartiles[0], high=quartiles[2])


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    n_sessions: int
    n_finished: int
    claims: int
    false_claims: int
    true_gains: int
    device_hours: float
    """Of all sessions together."""
    device_hours_per_true_gain: float | None
    """None: there is no true gain."""
    regret: Spread
    true_gain: Spread
    optimism: Spread
    busy_percent: Spread
    span_s: Spread
    preemptions: Spread


def summary_of(found: Sequence[Found]) -> Summary:
    n_true = sum(1 for one in found if one.true_gain is not None)
    hours = math.fsum(one.device_hours for one in found)
    return Summary(
        n_sessions=len(found),
        n_finished=sum(1 for one in found if one.state == "finished"),
        claims=sum(one.claims for one in found),
        false_claims=sum(one.false_claims for one in found),
        true_gains=n_true,
        device_hours=hours,
        device_hours_per_true_gain=hours / n_true if n_true else None,
        regret=Spread.of([one.regret for one in found]),
        true_gain=Spread.of([one.true_gain for one in found]),
        optimism=Spread.of([one.optimism for one in found]),
        busy_percent=Spread.of([one.busy_percent for one in found]),
        span_s=Spread.of([one.span_s for one in found]),
        preemptions=Spread.of([float(one.n_preemptions) for one in found]),
    )


def lab_data(found: Sequence[Found], *, world: str, n_devices: int, is_together: bool) -> dict[str, object]:
    """What `nightlab lab --json` prints."""
    return {
        "world": world,
        "n_devices": n_devices,
        "together": is_together,
        "sessions": [asdict(one) for one in found],
        "summary": asdict(summary_of(found)),
    }
