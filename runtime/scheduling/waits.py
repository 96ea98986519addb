"""What keeps a queued job out of the queue: others that have to end, or come first in its array. Pure."""

from __future__ import annotations

from runtime.model.dependencies import describe
from runtime.model.indexes import Queued
from runtime.model.nouns import Job
from runtime.model.state import State


def others_first(state: State, job: Job) -> str | None:
    """In words, after the job's name; None: it is in the queue, or on hold."""
    if job.unmet is not None:
        return f"is about to end: it {job.unmet}"
    if job.waits_for:
        return f"waits for {', '.join(describe(dependency) for dependency in job.waits_for)}"
    line = None if job.array is None else state.index.arrays.get(job.array.array_id)
    if job.array is None or line is None or Queued(job.order, job.job_id) not in line.ready[line.n_open :]:
        return None
    return (
        f"waits for other tasks of {job.array.array_id}, which runs {line.parallel} at once: "
        f"{line.n_holding} hold devices, and {line.n_open} come first"
    )
