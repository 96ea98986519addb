"""Tools over metrics: a curve, and which metrics a job has logged at all."""

from __future__ import annotations

from collections.abc import Sequence

from agent.planner.curve import Point, undisturbed
from agent.tools.errors import tool_boundary
from runtime_client.models import MetricPoint
from runtime_client.protocol import Runtime


def read_points(runtime: Runtime, job_id: str, metric: str) -> list[Point]:
    """The curve of a metric, over all attempts, without what a later attempt did again.

    Raises:
        FixAndRetry: there is no such job.
    """
    with tool_boundary():
        found = runtime.metrics(job_id, keys=[metric])
    return undisturbed([_point(point) for point in found])


def read_curve(runtime: Runtime, job_id: str, metric: str) -> list[float | None]:
    """The values of `read_points`; None: not finite.

    Raises:
        FixAndRetry: there is no such job.
    """
    return [point.value for point in read_points(runtime, job_id, metric)]


def arrivals(runtime: Runtime, job_id: str, metrics: Sequence[str]) -> list[str]:
    """To which of these metrics each point belongs, in the order in which they arrived.

    Raises:
        FixAndRetry: there is no such job.
    """
    with tool_boundary():
        return [point.key for point in runtime.metrics(job_id, keys=metrics)]


def logged_names(runtime: Runtime, run_id: str) -> list[str]:
    """Names of the metrics of a run, sorted: cheaper than its points.

    Raises:
        FixAndRetry: there is no such run.
    """
    with tool_boundary():
        return sorted(runtime.run(run_id).latest)


def metric_names(runtime: Runtime, job_id: str) -> list[str]:
    """Names of all metrics that a job has logged, sorted.

    Raises:
        FixAndRetry: there is no such job.
    """
    with tool_boundary():
        return sorted({point.key for point in runtime.metrics(job_id)})


def _point(point: MetricPoint) -> Point:
    return Point(value=point.value, step=point.step, attempt=point.attempt)
