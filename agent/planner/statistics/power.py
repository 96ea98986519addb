"""How many pairs a claim needs, and the smallest gain that a number of pairs can show. Pure.

Approximations for the test in `sequential`, held against simulation by the tests.
"""

from __future__ import annotations

import math

from scipy.special import ndtri


def pairs_needed(effect: float, noise: float, alpha: float, power: float = 0.8) -> int | None:
    """Pairs after which a gain of `effect` is called better with a chance of `power`; None when there is no gain.

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
    root = (math.sqrt(2 * math.log(1 / alpha)) + float(ndtri(power))) / (effect / noise)
    return max(least, math.ceil(root**2))


def smallest_detectable(noise: float, n_pairs: int, alpha: float, power: float = 0.8) -> float | None:
    """The smallest gain that `n_pairs` show with a chance of `power`, in the units of `noise`; None: none at all.

    Raises:
        ValueError: noise is negative, or alpha or power not between 0 and 1.
    """
    _check(noise, alpha, power)
    if n_pairs < _least_pairs(alpha):
        return None
    return noise * (math.sqrt(2 * math.log(1 / alpha)) + float(ndtri(power))) / math.sqrt(n_pairs)


def _least_pairs(alpha: float) -> int:
    """A pair at most doubles the evidence."""
    return math.ceil(math.log2(1 / alpha)) + 1


def _check(noise: float, alpha: float, power: float) -> None:
    if not (0 <= noise < math.inf and 0 < alpha < 1 and 0 < power < 1):
        raise ValueError(
            f"noise ({noise}) must not be negative, and alpha ({alpha}) and power ({power}) lie between 0 and 1"
        )
