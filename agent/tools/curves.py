"""Tools over metrics: a curve, and which metrics a job has logged at all."""

from __future__ import annotations

from agent.tools.errors import tool_boundary
from runtime_client.protocol import Runtime


def read_curve(runtime: Runtime, job_id: str, metric: str) -> list[float | None]:
    """Values of a metric in the order in which they arrived, over all attempts; None: not finite.

    Raises:
        FixAndRetry: there is no such job.
    """
    with tool_boundary():
        return [point.value for point in runtime.metrics(job_id, keys=[metric])]


def metric_names(runtime: Runtime, job_id: str) -> list[str]:
    """Names of all metrics that a job has logged, sorted.

    Raises:
        FixAndRetry: there is no such job.
    """
    with tool_boundary():
        return sorted({point.key for point in runtime.metrics(job_id)})
