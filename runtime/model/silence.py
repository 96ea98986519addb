"""When a job that says nothing is taken for hung: learned from its own silences, and conservative. Pure.

A sign of life is new output, a metric, or a checkpoint. Times are seconds of one clock that never goes back.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

N_LEAST = 8
"""Signs of life that make a rhythm."""
NEVER = 0.0
"""`Job.hang_after_s` of a job that is never taken for hung."""


class HangRules(Protocol):
    """What is read of the policy."""

    @property
    def hang_least_s(self) -> float: ...
    @property
    def hang_factor(self) -> float: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Rhythm:
    """What was heard of one attempt."""

    began_s: float
    last_s: float
    """The last sign of life, or the beginning."""
    longest_s: float = 0.0
    """The longest silence that was followed by a sign."""
    n_signs: int = 0

    def heard(self, at_s: float) -> Rhythm:
        """After a sign of life."""
        longest_s = max(self.longest_s, at_s - self.last_s)
        return replace(self, last_s=at_s, longest_s=longest_s, n_signs=self.n_signs + 1)

    def silent_s(self, now_s: float) -> float:
        return now_s - self.last_s


def hang_limit_s(rhythm: Rhythm, *, own_s: float | None, usual_s: float, rules: HangRules) -> float | None:
    """How long a silence must last to be a hang; None: no silence is one.

    A limit is learned only once signs came for as long as the least limit lasts: a job that prints a banner and then
    trains for hours without a word has shown no rhythm.

    Args:
        own_s: the job's own limit; None: learn it; `NEVER`: none.
        usual_s: the longest silence of earlier attempts of the same experiment.
    """
    if own_s is not None:
        return None if own_s == NEVER else own_s
    lasted_s = rhythm.last_s - rhythm.began_s
    if rules.hang_factor == 0.0 or rhythm.n_signs < N_LEAST or lasted_s < rules.hang_least_s:
        return None
    return max(rules.hang_least_s, rules.hang_factor * max(rhythm.longest_s, usual_s))


def hang_reason(rhythm: Rhythm, now_s: float) -> str:
    """In words."""
    said = f"no output, metric or checkpoint for {rhythm.silent_s(now_s):.0f} s"
    return f"{said}; its longest silence before was {rhythm.longest_s:.0f} s" if rhythm.n_signs else said
