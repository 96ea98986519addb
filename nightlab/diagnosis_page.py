"""Why a job failed, for a person."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent.doctor.diagnosis import Diagnosis
    from agent.doctor.evidence import Evidence
    from runtime_client.models import JobView


def print_diagnosis(
    job: JobView, attempt: int | None, evidence: Evidence, found: Diagnosis, refused: Sequence[str] = ()
) -> None:
    """The class and how sure it is, then what says so, then what to do."""
    where = "" if attempt is None else f", attempt {attempt}"
    doubt = "" if found.is_sure or found.failure == "unknown" else " (suspected)"
    print(f"{job.job_id}{where}: {found.failure.replace('_', ' ')}{doubt}")
    code = "" if evidence.exit_code is None else f", exit code {evidence.exit_code}"
    lines = [
        ("ended", f"{evidence.exit_reason or 'not known'}{code}"),
        ("before it", ", ".join(evidence.earlier)),
        ("cause", found.cause),
        ("change", found.suggestion),
        ("parameter", "" if job.suggestion is None else job.suggestion.why),
        ("set", ", ".join(f"{name}={value}" for name, value in (found.change or {}).items())),
        ("told by", found.made_by),
        ("not taken", "; ".join(refused)),
    ]
    for name, value in lines:
        if value:
            print(f"  {name:<10} {value}")
    if found.evidence:
        print("\nwhat says so:" if found.failure != "unknown" else "\nits last words:")
    for line in found.evidence:
        print(f"  {line}")
