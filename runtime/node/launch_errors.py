"""Why a command can not be run, found before anything was started."""

from __future__ import annotations

from runtime.model.states import ExitReason


class CannotLaunch(Exception):
    """The attempt can not be started as ordered. `evidence` says what was seen and what to do."""

    def __init__(self, exit_reason: ExitReason, evidence: str) -> None:
        super().__init__(evidence)
        self.exit_reason = exit_reason
        self.evidence = evidence
