"""Bugs of ours, as exceptions that carry what a person needs to find them. Pure.

Outcomes (a failed job, a preemption) are values, never these.
"""

from __future__ import annotations

from collections.abc import Sequence


class CoreError(Exception):
    """Base of all; never raised itself."""


class IllegalTransition(CoreError):
    """An event does not fit the state of its job or node; the state was left as it was."""

    def __init__(
        self, *, subject: str, from_state: str | None, event: str, why: str, recent: Sequence[str] = ()
    ) -> None:
        self.subject = subject
        self.from_state = from_state
        self.event = event
        self.why = why
        self.recent = tuple(recent)
        super().__init__(f"{subject}: {event} in state {from_state or 'absent'}: {why}{_tail(recent)}")


class OutOfSequence(CoreError):
    """An event is not the next one of the journal; the state was left as it was."""

    def __init__(self, *, seq: int, last_seq: int) -> None:
        self.seq = seq
        self.last_seq = last_seq
        super().__init__(f"event {seq} can not follow event {last_seq}; expected {last_seq + 1}")


class InvariantViolation(CoreError):
    """The state says something that can not be true."""

    def __init__(self, *, rule: str, found: str, job_id: str | None = None, recent: Sequence[str] = ()) -> None:
        self.rule = rule
        self.found = found
        self.job_id = job_id
        self.recent = tuple(recent)
        super().__init__(f"{rule}: {found}{_tail(recent)}")


class BadPayload(CoreError):
    """A stored event or snapshot can not be read."""

    def __init__(self, *, path: str, why: str) -> None:
        self.path = path
        super().__init__(f"{path}: {why}")


def _tail(recent: Sequence[str]) -> str:
    return f" (last events: {'; '.join(recent)})" if recent else ""
