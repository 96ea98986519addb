"""Tests that may be looked at after every pair: evidence by betting on signs, and the comparison made of it. Pure.

When two configurations do not differ, the difference of a pair (same seed) is as likely `d` as `-d`, whatever its
distribution. So, the size of a difference given, its sign is a fair coin, and a stake on it wins nothing on average:
the wealth of a player who starts with 1 reaches 1/alpha with a chance of at most alpha, however often and however
long one looks (Ville 1939). The wealth is the evidence. The stakes are those that a normal shift of the size looked
for would make best, a mixture over several sizes; they use the sizes of the differences so far, never a sign to come.

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

from agent.planner.statistics.verdicts import Comparison
from agent.store.views import Interval
from agent.task import Direction

Floats = NDArray[np.floating[Any]]

_LOG_2 = math.log(2.0)
_LOG_LARGEST = 600.0
"""Evidence is reported up to exp of this."""
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
    """The mixture for at most `max_pairs` pairs: most of the stake is on the smallest shift that they can show.

    With the sign of a normal shift `e` the wealth after n pairs is about exp(n e^2 / 2), so the smallest shift whose
    wealth can reach 1/alpha is sqrt(2 log(1/alpha) / n).
    """
    if max_pairs < 1 or not 0 < alpha < 1:
        raise ValueError(f"max_pairs ({max_pairs}) must be at least 1 and alpha ({alpha}) between 0 and 1")
    smallest = math.sqrt(2.0 * math.log(1.0 / alpha) / max_pairs)
    planned = min(max(smallest, _SMALLEST_EFFECT), _LARGEST_EFFECT)
    effects = (planned, min(2 * planned, _LARGEST_EFFECT), _LARGEST_EFFECT)
    return SignBet(effects=effects, weights=(0.6, 0.25, 0.15))


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Log evidence after each pair, for positive and for negative differences."""

    log_better: Floats
    log_worse: Floats


def evidence(differences: Sequence[float] | Floats, *, plan_pairs: int, alpha: float) -> Evidence:
    """Evidence that differences are centered above 0 (better) or below it (worse), after each pair in their order.

    Free of scale. Many sequences at once: pairs along the last axis.

    Raises:
        ValueError: a difference is not finite.
    """
    array = np.asarray(differences, dtype=float)
    if not np.all(np.isfinite(array)):
        raise ValueError("differences must be finite numbers: drop the pair, or call the trial invalid")
    bet = planned_bet(plan_pairs, alpha)
    return Evidence(log_better=bet.log_evidence(array), log_worse=bet.log_evidence(-array))


@dataclass(frozen=True, slots=True, kw_only=True)
class SequentialComparison:
    """What the pairs so far say about the first side against the second."""

    comparison: Comparison
    e_better: float
    """Largest evidence so far that it is better; 1/alpha decides."""
    e_worse: float
    p_better: float
    """Always-valid p-value: min(1, 1 / e_better)."""
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
    bet = planned_bet(max_pairs, planned_alpha or alpha)
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
            interval=None,
            n=n,
            n_dropped=n_dropped,
            is_decided=False,
            alpha=alpha,
            reason=f"{_count(n)} with valid values on both sides{_dropped(n_dropped)}; two are needed at least",
        )
    better = np.maximum.accumulate(bet.log_evidence(gains - min_effect))
    worse = np.maximum.accumulate(bet.log_evidence(-gains - min_effect))
    interval = _interval(gains, bet, alpha, sign)
    comparison, is_decided, why = _decide(better, worse, interval, alpha, min_effect, max_pairs)
    return SequentialComparison(
        comparison=comparison,
        e_better=_evidence_of(better[-1]),
        e_worse=_evidence_of(worse[-1]),
        p_better=min(1.0, math.exp(-min(float(better[-1]), _LOG_LARGEST))),
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
    n, needed = len(better), math.log(1.0 / alpha)
    by = f" by more than {min_effect:g}" if min_effect else ""
    first = {
        side: int(np.argmax(log >= needed)) for side, log in (("better", better), ("worse", worse)) if log[-1] >= needed
    }
    if first:
        side = min(first, key=lambda name: first[name])
        evidence_now = _evidence_of((better if side == "better" else worse)[-1])
        text = f"{side}{by} after {first[side] + 1} pairs: evidence {evidence_now:.3g}, {1 / alpha:.3g} was needed"
        return Comparison(side), True, text
    if interval is not None and min_effect > 0 and -min_effect <= interval.low and interval.high <= min_effect:
        text = f"the difference lies within {min_effect:g} either way after {n} pairs"
        return Comparison.INDISTINGUISHABLE, True, text
    held = f"evidence {_evidence_of(max(better[-1], worse[-1])):.3g} of {1 / alpha:.3g} needed"
    if n >= max_pairs:
        return Comparison.INDISTINGUISHABLE, True, f"no difference{by} shown by {n} pairs, the most allowed: {held}"
    return Comparison.INDISTINGUISHABLE, False, f"no difference{by} shown by {n} of at most {max_pairs} pairs: {held}"


def _evidence_of(log: float) -> float:
    return math.exp(min(float(log), _LOG_LARGEST))


def _count(n: int) -> str:
    return "one pair" if n == 1 else f"{n} pairs" if n else "no pair"


def _dropped(n: int) -> str:
    return f"; {_count(n)} without two valid values left out" if n else ""


def _interval(gains: Floats, bet: SignBet, alpha: float, sign: float) -> Interval | None:
    """The shifts that no pair so far has ruled out, each side at alpha; in the metric's units.

    It is widened to hold the mean where that lies outside, which keeps its coverage.
    """
    low = _end(gains, bet, alpha)
    high = _end(-gains, bet, alpha)
    if low is None or high is None:
        return None
    mean = math.fsum(gains) / len(gains)
    ends = sorted((sign * min(low, mean), sign * max(-high, mean)))
    return Interval(estimate=sign * mean, low=ends[0], high=ends[1], confidence=1 - 2 * alpha, n=len(gains))


_REACH = np.concatenate([-np.geomspace(1e6, 1e-3, 55), [0.0], np.geomspace(1e-3, 1e6, 55)])


def _end(gains: Floats, bet: SignBet, alpha: float) -> float | None:
    """The smallest center that is not ruled out as too small; None when none is."""
    middle = float(np.median(gains))
    spread = float(np.max(np.abs(gains - middle)))
    if spread == 0:
        spread = abs(middle) * 1e-9
    centers = middle + spread * _REACH
    is_out = _is_ruled_out(gains, centers, bet, alpha)
    if not is_out[0]:
        return None
    inside = int(np.argmin(is_out)) if not np.all(is_out) else len(centers) - 1
    low, high = float(centers[inside - 1]), float(centers[inside])
    for _ in range(12):  # 2^-12 of the step is left
        steps = np.linspace(low, high, 9)
        out = _is_ruled_out(gains, steps, bet, alpha)
        last = int(np.argmin(out)) if not np.all(out) else len(steps) - 1
        if last == 0:
            return low
        low, high = float(steps[last - 1]), float(steps[last])
    return low


def _is_ruled_out(gains: Floats, centers: Floats, bet: SignBet, alpha: float) -> NDArray[np.bool_]:
    log = bet.log_evidence(gains[None, :] - centers[:, None])
    found: NDArray[np.bool_] = np.max(log, axis=-1) >= math.log(1.0 / alpha)
    return found
