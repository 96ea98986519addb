"""What came of asking a model: how many calls gave nothing that could be read, and what all of them used. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from agent.llm.chat import Outcome, Trouble
from agent.llm.rung import Rung
from agent.llm.standing import Steps, after, begun, tried
from agent.store.views import ModelCallView

_NOT_MADE = (Trouble.OVER_BUDGET.value, Trouble.FORBIDDEN.value)
_OPEN = "open"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """Calls that were lost for one reason."""

    reason: str
    """An outcome of calls: `unusable`, `timed_out`, ..."""
    n_calls: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RungStep:
    """A model is asked in another way from here on."""

    at: float
    """Seconds since the epoch: of the call that decided it."""
    before: Rung
    after: Rung


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    n_calls: int
    """That were made and have ended."""
    n_lost: int
    """Of those: without an answer, or with one that could not be used."""
    lost_turns_percent: float | None
    """None: no call has ended yet."""
    lost: tuple[Lost, ...]
    """By reason, the most frequent first."""
    n_not_made: int
    """Beside those: calls that a budget or a rule forbade."""
    tokens: int
    """Both ways, what is booked for calls that last included."""
    cost_usd: float
    n_without_price: int
    """Calls that are not in the costs: nobody knows their price."""

    @property
    def n_answered(self) -> int:
        """With an answer that could be used."""
        return self.n_calls - self.n_lost

    @property
    def words(self) -> str:
        reasons = ", ".join(f"{one.n_calls} {one.reason.replace('_', ' ')}" for one in self.lost)
        lost = f", {self.n_lost} of them lost ({self.lost_turns_percent:.0f} %: {reasons})" if self.lost else ""
        price = f", {self.n_without_price} calls of unknown price" if self.n_without_price else ""
        return f"{self.n_calls} calls{lost}, {self.tokens:,} tokens, {self.cost_usd:.4g} USD{price}"


def turns(calls: Sequence[ModelCallView]) -> Turns:
    ended = [call for call in calls if call.outcome not in (*_NOT_MADE, _OPEN)]
    lost = Counter(call.outcome for call in ended if call.outcome != Outcome.USED.value)
    n_lost = lost.total()
    return Turns(
        n_calls=len(ended),
        n_lost=n_lost,
        lost_turns_percent=round(100 * n_lost / len(ended), 1) if ended else None,
        lost=tuple(Lost(reason=reason, n_calls=n) for reason, n in lost.most_common()),
        n_not_made=sum(1 for call in calls if call.outcome in _NOT_MADE),
        tokens=sum(call.prompt_tokens + call.completion_tokens for call in calls),
        cost_usd=sum(call.cost_usd or 0.0 for call in calls),
        n_without_price=sum(1 for call in ended if call.cost_usd is None),
    )


def rung_steps(calls: Sequence[ModelCallView], best: str) -> tuple[RungStep, ...]:
    """When the way of asking changed, by the same rules by which a session changes it; the oldest first.

    Args:
        best: the best rung that the task allows (`model.rung`); the session may have begun on a worse one.
    """
    steps = Steps(best=Rung(best))
    made = [one for call in calls if (one := tried(call.rung, call.outcome, call.at)) is not None]
    standing = begun(steps, next(iter(made), None))
    found = []
    for one in made:
        before, standing = standing.rung, after(standing, one, steps)
        if standing.rung is not before:
            found.append(RungStep(at=one.at, before=before, after=standing.rung))
    return tuple(found)
