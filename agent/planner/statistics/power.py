"""How many pairs a claim needs, and the smallest gain that a number of pairs can show. Pure.

Approximations for the test in `sequential`, held against simulation by the tests: what the exact look at the end
finds with normal noise, with the correction for a noise that must be estimated from the same pairs. Effects well above
that are found before all pairs are used.

Source: Guenther, Sample size formulas for normal theory t tests, The American Statistician 35(4), 1981.
"""

from __future__ import annotations

import math

from scipy.special import ndtri

from agent.planner.statistics.sequential import BETS_SHARE


def pairs_needed(effect: float, noise: float, alpha: float, power: float = 0.8) -> int | None:
    """The most pairs to plan, for a chance of `power` that a gain of `effect` is called better; None without a gain.

    `noise` is the standard deviation of one paired difference, in the units of `effect`. Where both sides vary alike
    and independently it is sqrt(2) times that of one evaluation.

    Raises:
        ValueError: noise is negative, or alpha or power not between 0 and 1.
    """
    _check(noise, alpha, power)
    if not effect > 0:
        return None
    least = _least_pairs(alpha)
    if noise == 0:
        return least
    bound, reach = _normal_bounds(alpha, power)
    return max(least, math.ceil(((bound + reach) * noise / effect) ** 2 + bound**2 / 2))


def smallest_detectable(noise: float, n_pairs: int, alpha: float, power: float = 0.8) -> float | None:
    """The smallest gain that `n_pairs` show with a chance of `power`, in the units of `noise`; None: none at all.

    Raises:
        ValueError: noise is negative, or alpha or power not between 0 and 1.
    """
    _check(noise, alpha, power)
    bound, reach = _normal_bounds(alpha, power)
    n_free = n_pairs - bound**2 / 2
    if n_pairs < _least_pairs(alpha) or n_free <= 0:
        return None
    return noise * (bound + reach) / math.sqrt(n_free)


def _normal_bounds(alpha: float, power: float) -> tuple[float, float]:
    """How far the mean must lie above 0, and above that, in its standard errors; for the exact look's part of alpha."""
    return -float(ndtri((1 - BETS_SHARE) * alpha)), float(ndtri(power))


def _least_pairs(alpha: float) -> int:
    """Fewer pairs can not decide even when all have the same sign."""
    return math.ceil(math.log2(1 / ((1 - BETS_SHARE) * alpha)))


def _check(noise: float, alpha: float, power: float) -> None:
    if not (0 <= noise < math.inf and 0 < alpha < 1 and 0 < power < 1):
        raise ValueError(
            f"noise ({noise}) must not be negative, and alpha ({alpha}) and power ({power}) lie between 0 and 1"
        )
