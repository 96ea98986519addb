"""Hypotheses: what a session claims, what was predicted, by which rule it is accepted, and how it stands. Pure.

`h1` is the claim of the session, "the best configuration found beats the default"; it owns half of the error budget
from the start and is judged on fresh seeds alone. `h2`, `h3`, ... are the challengers in the order in which they were
opened; each gets its share of the other half before its first racing value is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

FINAL = "h1"
"""Id of the session's own claim."""


class Status(StrEnum):
    OPEN = "open"
    """Evidence is still coming in, or will."""
    SUPPORTED = "supported"
    REFUTED = "refuted"
    """The configuration is worse."""
    INCONCLUSIVE = "inconclusive"
    """Closed without a decision: neither better nor worse by the rule."""
    DROPPED = "dropped"
    """Closed before there were pairs enough to judge it by; its prediction is not scored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What was expected before any evidence."""

    probability: float
    """0 to 1: that the claim will be supported."""
    effect: float | None
    """Expected gain over the reference, positive for better, in the metric's units; None: nothing was said."""
    made_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Hypothesis:
    hypothesis_id: str
    statement: str
    prediction: Prediction
    acceptance: str
    """The rule in words; `alpha`, `reference` and `configuration` say the same as data."""
    alpha: float
    """Chance of accepting it when it is false: its share of the error budget."""
    reference: str
    """Configuration that it is compared with."""
    configuration: str | None
    """Configuration that is claimed to be better; None: the best one found, which is not chosen yet."""
    budget_share: float
    """Of the evaluations that the session plans for, 0 to 1: what this claim may take at most."""
    opened_at: int
    """1, 2, 3, ... in the order of opening; the share of the error budget depends on it."""
    status: Status = Status.OPEN
    evidence: tuple[str, ...] = ()
    """Ids of the trials that it was judged by, both sides of each pair, in the order of the seeds."""
    n_pairs: int = 0
    e_value: float = 1.0
    """Evidence for it: it is accepted at 1 / alpha. What it would be by chance has a mean of at most 1."""
    note: str = ""
    """Why it stands as it does, in words."""

    @property
    def is_open(self) -> bool:
        return self.status is Status.OPEN

    @property
    def brier(self) -> float | None:
        """(probability - outcome)^2, 0 is best; None while it is open, and for a claim that was never judged.

        Source: Brier, Verification of forecasts expressed in terms of probability, Monthly Weather Review 78, 1950.
        """
        if self.status in (Status.OPEN, Status.DROPPED):
            return None
        return (self.prediction.probability - (1.0 if self.status is Status.SUPPORTED else 0.0)) ** 2
