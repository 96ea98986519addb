"""Jobs that run in virtual time: what they have logged and saved, and how an attempt ends. Pure arithmetic."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from runtime.engines.contract import AttemptKey
from runtime.model.nouns import Job
from runtime.server.reactor import CriteriaFacts
from runtime.simulator.work import EPSILON_S, Execution
from runtime.simulator.workload import Costs, TraceJob
from runtime_client.models import JobSpec, MetricPoint

from .world import Course


@dataclass(slots=True, kw_only=True)
class LabJob:
    """One job across its attempts."""

    job_id: str
    spec: JobSpec
    course: Course
    costs: Costs
    submitted_at: float
    points: list[MetricPoint] = field(default_factory=list)
    saved_s: float = 0.0
    """Work that survives the end of the attempt that runs; of a job that goes on from another, with that one's."""
    n_checkpoints: int = 0
    execution: Execution | None = None
    """The attempt that runs."""
    n_logged: int = 0
    """Points of the curve that the present attempt need not log, or has logged."""

    def begin(self, job: Job, attempt: int, now: float) -> Execution:
        """Start an attempt from what is saved."""
        trace = TraceJob(
            job_id=self.job_id,
            submitted_at_s=self.submitted_at,
            run_s=self.course.run_s,
            n_devices=job.shape.n_devices,
            costs=self.costs,
        )
        self.execution = Execution(job=trace, attempt=attempt, began_s=now, base_s=self.saved_s)
        self.n_logged = self._n_due(self.saved_s)
        return self.execution

    def sleep(self, seconds: float) -> None:
        """The machine sleeps for so long: the attempt that runs works that much later."""
        if self.execution is not None:
            self.execution.began_s += seconds
            if self.execution.notice_s is not None:
                self.execution.notice_s += seconds

    def first_point_at(self) -> float | None:
        """When the present attempt logs for the first time, undisturbed; None: never."""
        if self.execution is None or self.n_logged >= self.n_points:
            return None
        work_s = self.course.run_s * (self.n_logged + 1) / self.n_points
        return self.execution.works_from_s + max(work_s - self.execution.base_s, 0.0)

    def log_until(self, now: float) -> bool:
        """Log what is due; whether there was anything."""
        if self.execution is None:
            return False
        due = self._n_due(self.execution.base_s + self.execution.worked_s(now))
        before, self.n_logged = self.n_logged, max(self.n_logged, due)
        for step in range(before, self.n_logged):
            for key, values in self.course.curves.items():
                if step < len(values):
                    self.points.append(_point(key, values[step], step, now, self.execution.attempt))
        return self.n_logged > before

    @property
    def n_points(self) -> int:
        return max((len(values) for values in self.course.curves.values()), default=0)

    @property
    def metric_names(self) -> list[str]:
        return sorted(self.course.curves)

    def criteria(self) -> CriteriaFacts:
        """What was logged of the metrics that the job must have."""
        last = {point.key: point for point in self.points}
        required = self.spec.success.required_metrics
        return CriteriaFacts(
            missing_metrics=tuple(name for name in required if name not in last),
            non_finite_metrics=tuple(name for name in required if name in last and last[name].value is None),
        )

    def key(self) -> AttemptKey:
        assert self.execution is not None, "only an attempt that runs can be reported on"
        return AttemptKey(job_id=self.job_id, attempt=self.execution.attempt)

    def _n_due(self, done_s: float) -> int:
        if self.n_points == 0 or done_s <= 0:
            return 0
        if done_s >= self.course.run_s - EPSILON_S:
            return self.n_points
        return math.floor(self.n_points * done_s / self.course.run_s)


def _point(key: str, value: float, step: int, at: float, attempt: int) -> MetricPoint:
    is_finite = math.isfinite(value)
    text = None if is_finite else "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return MetricPoint(key=key, value=value if is_finite else None, text=text, step=step, at=at, attempt=attempt)
