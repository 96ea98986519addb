"""Tools over metrics: a curve, and which metrics a job has logged at all."""

from __future__ import annotations

from collections.abc import Sequence

from agent.planner.curve import Point, undisturbed
from agent.tools.errors import tool_boundary
from runtime_client.models import MetricPoint
from runtime_client.protocol import Runtime


def read_points(runtime: Runtime, job_ids: Sequence[str], metric: str) -> list[Point]:
    """The curve of a metric, over all attempts of jobs that went on one from the other, without what was done again.

    Raises:
        FixAndRetry: there is no such job.
    """
    found: list[Point] = []
    before = 0
    for job_id in job_ids:
        with tool_boundary():
            points = runtime.metrics(job_id, keys=[metric])
        found.extend(_point(point, before) for point in points)
        before = max((point.attempt for point in found), default=before)
    return undisturbed(found)


def arrivals(runtime: Runtime, job_ids: Sequence[str], metrics: Sequence[str]) -> list[str]:
    """To which of these metrics each point belongs, in the order in which they arrived.

    Raises:
        FixAndRetry: there is no such job.
    """
    with tool_boundary():
        return [point.key for job_id in job_ids for point in runtime.metrics(job_id, keys=metrics)]


def logged_names(runtime: Runtime, run_id: str) -> list[str]:
    """Names of the metrics of a run, sorted: cheaper than its points.

    Raises:
        FixAndRetry: there is no such run.
    """
    with tool_boundary():
        return sorted(runtime.run(run_id).latest)


def metric_names(runtime: Runtime, job_ids: Sequence[str]) -> list[str]:
    """Names of all metrics that these jobs have logged, sorted.

    Raises:
        FixAndRetry: there is no such job.
    """
    with tool_boundary():
        return sorted({point.key for job_id in job_ids for point in runtime.metrics(job_id)})


def _point(point: MetricPoint, before: int) -> Point:
    """Attempts are counted on from job to job."""
    return Point(value=point.value, step=point.step, attempt=before + point.attempt)
