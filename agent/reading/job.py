"""Why a job failed, by the rules of the failure doctor."""

from __future__ import annotations

from dataclasses import dataclass

from agent.doctor.diagnosis import Diagnosis
from agent.doctor.evidence import Evidence
from agent.doctor.gather import gather, last_ended
from agent.doctor.rules import diagnose
from runtime_client.models import JobView
from runtime_client.protocol import Runtime


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosed:
    view: JobView
    evidence: Evidence
    found: Diagnosis

    @property
    def has_failed(self) -> bool:
        """There is something to diagnose: it has ended, or an attempt of it has."""
        return self.view.is_ended or self.evidence.exit_reason is not None


def diagnosed(runtime: Runtime, job_id: str) -> Diagnosed:
    """
    Raises:
        RuntimeClientError: the runtime does not answer, or knows no such job.
        ToolFailed: it refuses for good.
    """
    view = runtime.job(job_id)
    evidence = gather(runtime, view, last_ended(view))
    return Diagnosed(view=view, evidence=evidence, found=diagnose(evidence))
