"""What a failed trial is called where failures are counted: one name for reports, tables and the morning. Pure."""

from __future__ import annotations

from agent.doctor.diagnosis import Diagnosis, FailureClass
from agent.store.views import TrialView

NO_VALUE = "no usable value"
NOT_TOLD = "could not tell why"


def failure_name(trial: TrialView) -> str:
    """The class that the doctor found; where it could not tell, or has not looked, the exit reason."""
    found = trial.facts.diagnosis
    if found is not None and found.failure not in (FailureClass.UNKNOWN, FailureClass.STOPPED):
        return found.failure.value
    known = trial.exit_reason
    return NO_VALUE if known in (None, "completed") else str(known)


def in_words(found: Diagnosis) -> str:
    """Class and cause for the end of a note: `shape: sizes do not fit`, `could not tell why`."""
    if found.failure is FailureClass.UNKNOWN:
        return NOT_TOLD
    doubt = "" if found.is_sure else ", suspected"
    return f"{found.failure.value.replace('_', ' ')}{doubt}: {found.cause}"
