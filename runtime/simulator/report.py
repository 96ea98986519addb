"""What a simulation shows, in numbers: waits and completions by class, device time, work lost. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from runtime.model.states import JobState
from runtime.scheduling.policy import Policy

from .ledger import JobLine, Ledger
from .work import Lost


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Of times in seconds; p50 and p99 are values that occur (nearest rank)."""

    mean_s: float
    p50_s: float
    p99_s: float
    max_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassReport:
    name: str
    n_jobs: int
    """Submitted and not refused."""
    n_succeeded: int
    n_refused: int
    """Could not run on an empty cluster."""
    n_unended: int
    """Had not ended when nothing could happen any more."""
    n_preemptions: int
    n_jobs_preempted: int
    wait: Spread | None
    """Submission to first start; None: nobody started."""
    completion: Spread | None
    """Submission to success."""
    recorded_wait: Spread | None
    """As it was in reality, where the trace says it of every job."""
    held_device_s: float
    lost_device_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    n_devices: int
    span_s: float
    """First submission to the last end."""
    submitting_s: float
    """First to last submission."""
    busy_percent: float
    """Devices held, over devices times `span_s`."""
    busy_percent_submitting: float
    """The same, up to the last submission: without the time in which the cluster empties."""
    idle_device_hours: float
    """Up to the last submission."""
    held_device_s: float
    lost_to_preemption: Lost
    lost_to_faults: Lost
    n_preemptions: int
    n_node_faults: int
    n_attempt_faults: int
    classes: tuple[ClassReport, ...]
    """Highest priority first."""

    @property
    def lost_percent(self) -> float:
        """Recomputed, notice checkpoints and restarts over all that was held."""
        lost_s = self.lost_to_preemption.total_s + self.lost_to_faults.total_s
        return 100.0 * lost_s / self.held_device_s if self.held_device_s else 0.0

    def of_class(self, name: str) -> ClassReport:
        return next(report for report in self.classes if report.name == name)


def report_of(ledger: Ledger, policy: Policy) -> Report:
    """Sum up a simulation."""
    lines = list(ledger.lines.values())
    begins_s = min((line.job.submitted_at_s for line in lines), default=0.0)
    last_s = max((line.job.submitted_at_s for line in lines), default=0.0)
    ends_s = max((line.ended_s for line in lines if line.ended_s is not None), default=last_s)
    held_s = sum(line.held_device_s for line in lines)
    held_submitting_s = _held_until(ledger, last_s)
    by_class: dict[str, list[JobLine]] = {}
    for line in lines:
        by_class.setdefault(line.job.priority_class, []).append(line)
    names = sorted(by_class, key=lambda name: (-policy.classes[name].priority, name))
    return Report(
        n_devices=ledger.n_devices,
        span_s=ends_s - begins_s,
        submitting_s=last_s - begins_s,
        busy_percent=_percent(held_s, ledger.n_devices * (ends_s - begins_s)),
        busy_percent_submitting=_percent(held_submitting_s, ledger.n_devices * (last_s - begins_s)),
        idle_device_hours=max(0.0, ledger.n_devices * (last_s - begins_s) - held_submitting_s) / 3600.0,
        held_device_s=held_s,
        lost_to_preemption=ledger.lost_to_preemption,
        lost_to_faults=ledger.lost_to_faults,
        n_preemptions=sum(line.n_preemptions for line in lines),
        n_node_faults=ledger.n_node_faults,
        n_attempt_faults=ledger.n_attempt_faults,
        classes=tuple(_class_report(name, by_class[name]) for name in names),
    )


def spread(values: Iterable[float]) -> Spread | None:
    """None of nothing."""
    ordered = sorted(values)
    if not ordered:
        return None
    return Spread(
        mean_s=math.fsum(ordered) / len(ordered),
        p50_s=_rank(ordered, 0.50),
        p99_s=_rank(ordered, 0.99),
        max_s=ordered[-1],
    )


def _rank(ordered: Sequence[float], share: float) -> float:
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def _class_report(name: str, lines: Sequence[JobLine]) -> ClassReport:
    taken = [line for line in lines if line.refusal is None]
    recorded = [line.job.recorded_wait_s for line in taken if line.job.recorded_wait_s is not None]
    return ClassReport(
        name=name,
        n_jobs=len(taken),
        n_succeeded=sum(line.end_state is JobState.SUCCEEDED for line in taken),
        n_refused=len(lines) - len(taken),
        n_unended=sum(line.end_state is None for line in taken),
        n_preemptions=sum(line.n_preemptions for line in taken),
        n_jobs_preempted=sum(line.n_preemptions > 0 for line in taken),
        wait=spread(line.started_s - line.job.submitted_at_s for line in taken if line.started_s is not None),
        completion=spread(
            line.ended_s - line.job.submitted_at_s
            for line in taken
            if line.ended_s is not None and line.end_state is JobState.SUCCEEDED
        ),
        recorded_wait=spread(recorded) if len(recorded) == len(taken) else None,
        held_device_s=sum(line.held_device_s for line in taken),
        lost_device_s=sum(line.lost_device_s for line in taken),
    )


def _held_until(ledger: Ledger, until_s: float) -> float:
    """Device-seconds held up to a time."""
    changes = ledger.changes
    total_s = held = 0.0
    last_s = changes.at_s[0] if changes.at_s else 0.0
    for at_s, step in zip(changes.at_s, changes.d_held, strict=True):
        if at_s >= until_s:
            break
        total_s += held * (at_s - last_s)
        held += step
        last_s = at_s
    return total_s + held * max(0.0, until_s - last_s)


def _percent(part: float, whole: float) -> float:
    return 100.0 * part / whole if whole > 0 else 0.0
