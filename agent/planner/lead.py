"""Whether one proposer is clearly better or worse than the others, from few trials. Pure.

How often a trial of it beats one of the others is the statistic of Mann and Whitney (1947), each trial weighted by its
age. It counts by a lower confidence bound, so that a lead has to be sure before it moves slots, and it never asks for a
new best: who is good throughout seldom beats the own last one, and would get no credit for that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

_Z = 0.5
"""Standard errors below the estimate. More, and four good trials of eight move nothing."""
_EVEN = 0.5
_CLEAR = 0.65
"""Who surely beats the others so often leads in full."""
_PRIOR = 2.0
"""Trials that the arm is thought to have had, half of them better than the others'."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One measured trial."""

    loss: float
    weight: float
    """By its age, 0 to 1."""
    is_arms: bool
    """It is one of the proposer that is asked about."""


def lead(seen: Sequence[Seen]) -> float:
    """0: not surely better than the others; 1: it surely beats them two times out of three."""
    arm, others = [one for one in seen if one.is_arms], [one for one in seen if not one.is_arms]
    n_others = sum(one.weight for one in others)
    if not arm or not others:
        return 0.0
    beaten = sum(one.weight * _beats(one.loss, others) for one in arm) / n_others
    n = sum(one.weight for one in arm) + _PRIOR
    rate = (beaten + _EVEN * _PRIOR) / n
    sure = rate - _Z * math.sqrt(rate * (1.0 - rate) / n)
    return min(max((sure - _EVEN) / (_CLEAR - _EVEN), 0.0), 1.0)


def lag(seen: Sequence[Seen]) -> float:
    """0: not surely worse than the others; 1: they surely beat it two times out of three."""
    return lead([replace(one, loss=-one.loss) for one in seen])


def _beats(loss: float, others: Sequence[Seen]) -> float:
    """Weight of the others that are worse; equals count half."""
    return sum(o.weight * (1.0 if loss < o.loss else 0.5 if loss == o.loss else 0.0) for o in others)
