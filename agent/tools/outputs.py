"""Tools over what jobs printed. Bounded: a gigabyte of output costs no more than a megabyte."""

from __future__ import annotations

from agent.tools.errors import FixAndRetry, tool_boundary
from runtime_client.models import JobView, LogErrors
from runtime_client.protocol import Runtime

MOST_BYTES = 2**20
"""Of the end of the common output; of each rank's own, an eighth."""


def read_errors(runtime: Runtime, job_id: str, attempt: int | None) -> LogErrors | None:
    """Error lines and the ends of the outputs; None: there is none any more."""
    try:
        with tool_boundary():
            return runtime.log_errors(job_id, attempt=attempt, limit=MOST_BYTES)
    except FixAndRetry:
        return None


def last_values(runtime: Runtime, job: JobView) -> dict[str, float | None]:
    """Last value of each metric of a job; None where it is NaN or infinite."""
    try:
        with tool_boundary():
            return dict(runtime.run(job.run_id).latest)
    except FixAndRetry:
        return {}


def machine_memory_mb(runtime: Runtime, node_ids: frozenset[str]) -> float | None:
    """What the smallest of these machines has, in MiB; None: none of them is known."""
    with tool_boundary():
        found = [node.memory_mb for node in runtime.nodes() if node.node_id in node_ids]
    return float(min(found)) if found else None
