"""How well predictions came true: the Brier score of closed hypotheses, with the base rate beside it. Pure."""

from __future__ import annotations

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
