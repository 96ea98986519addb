"""Comparisons that may be looked at after every pair: bets on signs, and one exact look at the end. Pure.

When two configurations do not differ, the difference of a pair (same seed) is as likely `d` as `-d`, whatever its
distribution. So, the size of a difference given, its sign is a fair coin, and a stake on it wins nothing on average:
the wealth of a player who starts with 1 reaches 1/alpha with a chance of at most alpha, however often and however
long one looks (Ville 1939). The wealth is the evidence. The stakes are those that a normal shift of the size looked
for would make best, a mixture of two sizes; they use the sizes of the differences so far, never a sign to come.

Bets are good at strong effects and give away some power at weak ones. So the error is split: part of it is for the
bets, after every pair, and the rest for one exact test when the most pairs that are allowed are there. Sessions that
are looked at once an hour and those that are looked at once make false claims at the same rate.

Sources: Ville, Etude critique de la notion de collectif, 1939; de la Pena, Annals of Probability 27(1), 1999
(symmetric increments); Ramdas, Gruenwald, Vovk, Shafer, Game-theoretic statistics and safe anytime-valid inference,
Statistical Science 38(4), 2023; Howard, Ramdas, McAuliffe, Sekhon, Annals of Statistics 49(2), 2021 (confidence
sequences).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agent.planner.statistics.sign_flips import flip_p_values
from agent.planner.statistics.verdicts import Comparison
from agent.store.views import Interval
from agent.task import Direction

Floats = NDArray[np.floating[Any]]

_LOG_2 = math.log(2.0)
_LOG_LARGEST = 600.0
"""Evidence is reported up to exp of this."""
BETS_SHARE = 0.4
"""Part of the error that the bets may spend; the exact look has the rest."""
_SMALLEST_EFFECT, _LARGEST_EFFECT = 0.1, 6.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SignBet:
    """A mixture of stakes, fixed before the first pair."""

    effects: tuple[float, ...]
    """Shifts looked for, in standard deviations of a difference."""
    weights: tuple[float, ...]
    """Share of the first stake on each; they sum to 1."""

    def log_evidence(self, differences: Floats) -> Floats:
        """Log wealth of the bet on positive differences after each pair; along the last axis, any shape before it.

        Not below what one stake keeps; 0 everywhere when all differences are 0.
        """
        sizes = np.sqrt(np.cumsum(differences**2, axis=-1) / np.arange(1, differences.shape[-1] + 1))
        standardized = np.divide(differences, sizes, out=np.zeros_like(differences), where=sizes > 0)
        total: Floats | None = None
        for effect, weight in zip(self.effects, self.weights, strict=True):
            stake = effect * math.sqrt(1.0 + effect**2)
            # log(1 + tanh(x)) = log 2 - log(1 + exp(-2 x))
            steps = _LOG_2 - np.logaddexp(0.0, -2.0 * stake * standardized)
            wealth = np.cumsum(steps, axis=-1) + math.log(weight)
            total = wealth if total is None else np.logaddexp(total, wealth)
        assert total is not None
        return total


def planned_bet(max_pairs: int, alpha: float) -> SignBet:
    """Stakes for at most `max_pairs` pairs: half for weak effects, half for those that nobody could miss.

    With the sign of a normal shift `e` the wealth after n pairs is about exp(n e^2 / 2), so the smallest shift whose
    wealth can reach 1/alpha is sqrt(2 log(1/alpha) / n). The exact look is better at that one; 1.5 times as much is
    what the bets find well before it.
    """
    smallest = math.sqrt(2.0 * math.log(1.0 / alpha) / max_pairs)
    planned = min(max(1.5 * smallest, _SMALLEST_EFFECT), _LARGEST_EFFECT)
    return SignBet(effects=(planned, _LARGEST_EFFECT), weights=(0.5, 0.5))


@dataclass(frozen=True, slots=True, kw_only=True)
class SequentialTest:
    """Always-valid p-values of the claim that differences are centered above 0; fixed before the first pair."""

    max_pairs: int
    """The exact look is taken once, when so many are there; pairs after it do not count."""
    planned_alpha: float
    """For which the stakes are made; any other is valid too, with a little less power."""

    def __post_init__(self) -> None:
        if self.max_pairs < 1 or not 0 < self.planned_alpha < 1:
            raise ValueError(
                f"max_pairs ({self.max_pairs}) must be 1 or more and alpha ({self.planned_alpha}) between 0 and 1"
            )

    def p_values(self, differences: Floats) -> Floats:
        """Smallest p-value so far, after each pair along the last axis; any shape before it."""
        return self._combined(self.log_wealth(differences), differences)

    def log_wealth(self, differences: Floats) -> Floats:
        """Largest log evidence of the bets so far, after each pair."""
        bet = planned_bet(self.max_pairs, self.planned_alpha)
        return np.maximum.accumulate(bet.log_evidence(differences[..., : self.max_pairs]), axis=-1)

    def _combined(self, log_wealth: Floats, differences: Floats) -> Floats:
        p = np.minimum(1.0, np.exp(-np.minimum(log_wealth, _LOG_LARGEST)) / BETS_SHARE)
        if p.shape[-1] >= self.max_pairs:
            exact = flip_p_values(differences[..., : self.max_pairs]) / (1 - BETS_SHARE)
            p[..., self.max_pairs - 1] = np.minimum(p[..., self.max_pairs - 1], exact)
        return p


@dataclass(frozen=True, slots=True, kw_only=True)
class SequentialComparison:
    """What the pairs so far say about the first side against the second."""

    comparison: Comparison
    e_better: float
    """Largest evidence of the bets so far that it is better: 1 at the start, and at random seldom more."""
    e_worse: float
    p_better: float
    """Always-valid p-value of the claim that it is better, bets and exact look together; at most alpha decides."""
    p_worse: float
    interval: Interval | None
    """Confidence sequence of first minus second, in the metric's units; None while nothing can be ruled out."""
    n: int
    """Usable pairs."""
    n_dropped: int
    """Pairs without two finite values; they never count."""
    is_decided: bool
    """Whether more pairs would not change the comparison."""
    alpha: float
    """Chance at most of a false better, and, apart from it, of a false worse."""
    reason: str


def compare_sequentially(
    pairs: Sequence[tuple[float | None, float | None]],
    *,
    direction: Direction,
    alpha: float,
    min_effect: float = 0.0,
    max_pairs: int,
    planned_alpha: float | None = None,
) -> SequentialComparison:
    """Compare after any number of pairs (same seed, in a fixed order of seeds), as often as one likes.

    Better and worse mean by more than `min_effect`, in the metric's units, and each is false with a chance of at most
    `alpha`. Only the first `max_pairs` usable pairs count. Where alpha grows while the claim is open, `planned_alpha`
    is what it was before the first pair: the stakes are made for it.

    Raises:
        ValueError: alpha is not between 0 and 1, or min_effect is negative or not finite.
    """
    if not (0 <= min_effect < math.inf):
        raise ValueError(f"min_effect ({min_effect}) must be a finite number, not negative")
    if not 0 < alpha < 1:
        raise ValueError(f"alpha ({alpha}) must lie between 0 and 1")
    test = SequentialTest(max_pairs=max_pairs, planned_alpha=planned_alpha or alpha)
    usable = [(a, b) for a, b in pairs if a is not None and b is not None and math.isfinite(a) and math.isfinite(b)]
    n_dropped = len(pairs) - len(usable)
    sign = 1.0 if direction is Direction.MAXIMIZE else -1.0
    gains = sign * np.array([a - b for a, b in usable[:max_pairs]], dtype=float)
    n = len(gains)
    if n < 2:
        return SequentialComparison(
            comparison=Comparison.INVALID,
            e_better=1.0,
            e_worse=1.0,
            p_better=1.0,
            p_worse=1.0,
            interval=None,
            n=n,
            n_dropped=n_dropped,
            is_decided=False,
            alpha=alpha,
            reason=f"{_count(n)} with valid values on both sides{_dropped(n_dropped)}; two are needed at least",
        )
    better, worse = test.p_values(gains - min_effect), test.p_values(-gains - min_effect)
    interval = _interval(gains, test, alpha, sign)
    comparison, is_decided, why = _decide(better, worse, interval, alpha, min_effect, max_pairs)
    return SequentialComparison(
        comparison=comparison,
        e_better=_evidence_of(test.log_wealth(gains - min_effect)),
        e_worse=_evidence_of(test.log_wealth(-gains - min_effect)),
        p_better=float(better[-1]),
        p_worse=float(worse[-1]),
        interval=interval,
        n=n,
        n_dropped=n_dropped,
        is_decided=is_decided,
        alpha=alpha,
        reason=why + _dropped(n_dropped),
    )


def _decide(
    better: Floats, worse: Floats, interval: Interval | None, alpha: float, min_effect: float, max_pairs: int
) -> tuple[Comparison, bool, str]:
    n = len(better)
    by = f" by more than {min_effect:g}" if min_effect else ""
    sides = (("better", better), ("worse", worse))
    first = {side: int(np.argmax(p <= alpha)) for side, p in sides if p[-1] <= alpha}
    if first:
        side = min(first, key=lambda name: first[name])
        p = float(better[-1] if side == "better" else worse[-1])
        text = f"{side}{by} after {first[side] + 1} pairs: p {p:.2g}, at most {alpha:.2g} was needed"
        return Comparison(side), True, text
    if interval is not None and min_effect > 0 and -min_effect <= interval.low and interval.high <= min_effect:
        text = f"the difference lies within {min_effect:g} either way after {n} pairs"
        return Comparison.INDISTINGUISHABLE, True, text
    held = f"p {min(float(better[-1]), float(worse[-1])):.2g}, at most {alpha:.2g} is needed"
    if n >= max_pairs:
        return Comparison.INDISTINGUISHABLE, True, f"no difference{by} shown by {n} pairs, the most allowed: {held}"
    return Comparison.INDISTINGUISHABLE, False, f"no difference{by} shown by {n} of at most {max_pairs} pairs: {held}"


def _evidence_of(log_wealth: Floats) -> float:
    return math.exp(min(max(float(log_wealth[-1]), 0.0), _LOG_LARGEST))


def _count(n: int) -> str:
    return "one pair" if n == 1 else f"{n} pairs" if n else "no pair"


def _dropped(n: int) -> str:
    return f"; {_count(n)} without two valid values left out" if n else ""


def _interval(gains: Floats, test: SequentialTest, alpha: float, sign: float) -> Interval | None:
    """The shifts that no pair so far has ruled out, each side at alpha; in the metric's units.

    It is widened to hold the mean where that lies outside, which keeps its coverage.
    """
    low = _end(gains, test, alpha)
    high = _end(-gains, test, alpha)
    if low is None or high is None:
        return None
    mean = math.fsum(gains) / len(gains)
    ends = sorted((sign * min(low, mean), sign * max(-high, mean)))
    return Interval(estimate=sign * mean, low=ends[0], high=ends[1], confidence=1 - 2 * alpha, n=len(gains))


_REACH = np.concatenate([-np.geomspace(1e6, 1e-2, 25), [0.0], np.geomspace(1e-2, 2.0, 8)])
"""Centers tried first, in widest distances from the median."""
_N_ROUNDS, _N_STEPS = 4, 9


def _end(gains: Floats, test: SequentialTest, alpha: float) -> float | None:
    """The smallest center that is not ruled out as too small, to a part in 4,000; None when none is ruled out."""
    middle = float(np.median(gains))
    spread = float(np.max(np.abs(gains - middle))) or abs(middle) * 1e-9
    centers = middle + spread * _REACH
    for _ in range(_N_ROUNDS + 1):
        is_out = test.p_values(gains[None, :] - centers[:, None])[..., -1] <= alpha
        if not is_out[0]:
            return None
        inside = len(centers) - 1 if np.all(is_out) else int(np.argmin(is_out))
        centers = np.linspace(centers[inside - 1], centers[inside], _N_STEPS)
    return float(centers[0])
