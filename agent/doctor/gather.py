"""Reads what the rules look at: a job's record, the end of its output, its metrics. A thin shell."""

from __future__ import annotations

import signal

from agent.doctor.evidence import Evidence
from agent.doctor.rules import signal_number
from agent.tools.outputs import last_values, machine_memory_mb, read_errors
from runtime_client.models import AttemptView, JobView
from runtime_client.protocol import Runtime

_MIB_PER_GB = 1e9 / 2**20


def last_ended(job: JobView) -> AttemptView | None:
    """The attempt that is looked at where none is named: the last one that has ended."""
    return next((attempt for attempt in reversed(job.attempts) if attempt.ended_at is not None), None)


def gather(
    runtime: Runtime, job: JobView, attempt: AttemptView | None, *, wanted_metric: str | None = None
) -> Evidence:
    """The evidence about an attempt; None: the job ended without any.

    Raises:
        RuntimeClientError: the runtime does not answer; worth a repeat.
        ToolFailed: it refuses for good.
    """
    if attempt is None:
        return Evidence(exit_reason=job.exit_reason, state_reason=job.state_reason, wanted_metric=wanted_metric)
    is_last = attempt is job.attempts[-1]
    return Evidence(
        exit_reason=(job.exit_reason if is_last and job.is_ended else None) or attempt.exit_reason,
        exit_code=attempt.exit_code,
        line=attempt.evidence,
        state_reason=job.state_reason if is_last else None,
        earlier=tuple(one.exit_reason for one in job.attempts if one.attempt < attempt.attempt and one.exit_reason),
        output=read_errors(runtime, job.job_id, attempt.attempt),
        wanted_metric=wanted_metric,
        metrics=last_values(runtime, job),
        peak_memory_mb=attempt.peak_memory_mb,
        memory_mb=_memory_mb(runtime, job, attempt),
    )


def _memory_mb(runtime: Runtime, job: JobView, attempt: AttemptView) -> float | None:
    """What it could have at most; asked for only where it matters."""
    if job.spec.compute.memory_gb is not None:
        return job.spec.compute.memory_gb * _MIB_PER_GB
    if signal_number(attempt.exit_code) != signal.SIGKILL or attempt.peak_memory_mb is None:
        return None
    return machine_memory_mb(runtime, frozenset(placement.node_id for placement in attempt.placements))
