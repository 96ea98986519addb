"""How well predictions came true: the Brier score of closed hypotheses, with the base rate beside it. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from agent.planner.hypothesis import Hypothesis, Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    n: int
    """Closed hypotheses that were judged."""
    brier: float
    """Mean squared distance of the predicted probability from what happened: 0 is best, 0.25 is always saying 1/2."""
    base_rate: float
    """Share of them that was supported."""
    brier_of_base_rate: float
    """What always saying the base rate would have scored: a forecaster who knows something is below it."""

    @property
    def words(self) -> str:
        if self.n == 0:
            return "no prediction can be scored yet"
        noun = "prediction" if self.n == 1 else "predictions"
        return (
            f"{self.n} {noun} scored: Brier {self.brier:.3f} (0 is best; always saying the base rate of "
            f"{100 * self.base_rate:.0f} % would give {self.brier_of_base_rate:.3f})"
        )


def calibration(hypotheses: Iterable[Hypothesis]) -> Calibration:
    """Over the claims that were judged; open and dropped ones are left out. All zeros when there are none."""
    judged = [(hypothesis, score) for hypothesis in hypotheses if (score := hypothesis.brier) is not None]
    n = len(judged)
    if n == 0:
        return Calibration(n=0, brier=0.0, base_rate=0.0, brier_of_base_rate=0.0)
    rate = sum(1 for hypothesis, _ in judged if hypothesis.status is Status.SUPPORTED) / n
    return Calibration(
        n=n,
        brier=sum(score for _, score in judged) / n,
        base_rate=rate,
        brier_of_base_rate=rate * (1 - rate),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """Judged claims whose predicted probability lies in one part of 0 to 1."""

    low: float
    high: float
    n: int
    predicted: float
    """Mean of the probabilities."""
    came_true: float
    """Share of them that was supported."""
    interval: tuple[float, float]
    """Of that share, 95 %, by Wilson's score.

    Source: Wilson, Probable inference, Journal of the American Statistical Association 22, 1927.
    """


def bins(hypotheses: Iterable[Hypothesis], n_bins: int = 5) -> tuple[Bin, ...]:
    """What was predicted against what happened, for parts of equal width that hold any judged claim."""
    judged = [one for one in hypotheses if one.brier is not None]
    found = []
    for at in range(n_bins):
        own = [one for one in judged if min(int(one.prediction.probability * n_bins), n_bins - 1) == at]
        if not own:
            continue
        share = sum(1 for one in own if one.status is Status.SUPPORTED) / len(own)
        found.append(
            Bin(
                low=at / n_bins,
                high=(at + 1) / n_bins,
                n=len(own),
                predicted=sum(one.prediction.probability for one in own) / len(own),
                came_true=share,
                interval=_wilson(share, len(own)),
            )
        )
    return tuple(found)


_Z = 1.959964
"""Of a two-sided 95 % interval."""


def _wilson(share: float, n: int) -> tuple[float, float]:
    middle = (share + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z * math.sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2)) / (1 + _Z**2 / n)
    return max(middle - half, 0.0), min(middle + half, 1.0)
