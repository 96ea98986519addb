"""A question to people, and what counts as its answer at an instant. Pure; times are seconds since the epoch."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from agent.store.views import TrialView

DEADLINE = "deadline"
"""`answered_by` where nobody answered in time."""
SESSION = "session"
"""`answered_by` of what the session withdrew: it does not want to know any more."""


class GateKind(StrEnum):
    OUTSIDE_SPACE = "outside_space"
    """A trial with values beyond the ranges of the space."""
    CODE = "code"
    """A trial of code that a model or an outside agent has edited, and that no trial ran before."""
    FIX = "fix"
    """A trial that changes something because another one failed."""
    TRIAL = "trial"
    """A trial that a model or an outside agent suggests."""
    EARLY_STOP = "early_stop"
    """Ending a running trial because a model says that it is lost."""


class Answer(StrEnum):
    APPROVE = "approve"
    DENY = "deny"
    WITHDRAWN = "withdrawn"
    """Nothing is to be answered any more; asked anew if it comes up again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    gate_id: int
    session_id: str
    subject: str
    """What it is about, once for each kind: see `agent.gates.actions`."""
    kind: GateKind
    text: str
    """The question, in a sentence."""
    trial: TrialView | None
    """The proposed trial that it is about, as it was when it was asked; None: it is about something else."""
    cost_device_s: float | None
    """What it is expected to use, in device-seconds; None: nothing is known to judge it by."""
    asked_at: float
    answer_by: float
    """Who has not answered by then agrees with `unanswered`."""
    unanswered: Answer
    answer: Answer | None
    """None: nobody has answered, or not yet."""
    answered_by: str | None
    """A user name, `deadline` or `session`."""
    answered_at: float | None
    note: str | None
    """What whoever answered said with it."""

    @property
    def is_open(self) -> bool:
        """Nothing is written as its answer; the deadline may have passed all the same."""
        return self.answer is None

    def answer_at(self, now: float) -> Answer | None:
        """What counts at an instant; None: it waits for a person."""
        if self.answer is None and now >= self.answer_by:
            return self.unanswered
        return self.answer

    def is_waiting(self, now: float) -> bool:
        """A person can still answer."""
        return self.answer_at(now) is None

    @property
    def words(self) -> str:
        """How it was answered: `denied by ada: too dear`, `denied: nobody answered in time`."""
        if self.answer is None:
            return "waits for an answer"
        said = {Answer.APPROVE: "approved", Answer.DENY: "denied", Answer.WITHDRAWN: "withdrawn"}[self.answer]
        if self.answered_by == DEADLINE:
            return f"{said}: nobody answered in time"
        by = "" if self.answered_by in (None, SESSION) else f" by {self.answered_by}"
        return f"{said}{by}{': ' + self.note if self.note else ''}"
