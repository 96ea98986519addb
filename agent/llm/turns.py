"""What came of asking a model: how many calls gave nothing that could be read, and what all of them used. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent.llm.chat import Outcome, Trouble
from agent.store.views import ModelCallView

_NOT_MADE = (Trouble.OVER_BUDGET.value, Trouble.FORBIDDEN.value)
_OPEN = "open"


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    n_calls: int
    """That were made and have ended."""
    n_lost: int
    """Of those: without an answer, or with one that could not be used."""
    lost_turns_percent: float | None
    """None: no call has ended yet."""
    tokens: int
    """Both ways, what is booked for calls that last included."""
    cost_usd: float
    n_without_price: int
    """Calls that are not in the costs: nobody knows their price."""

    @property
    def words(self) -> str:
        lost = f", {self.n_lost} of them lost ({self.lost_turns_percent:.0f} %)" if self.lost_turns_percent else ""
        price = f", {self.n_without_price} calls of unknown price" if self.n_without_price else ""
        return f"{self.n_calls} calls{lost}, {self.tokens:,} tokens, {self.cost_usd:.4g} USD{price}"


def turns(calls: Sequence[ModelCallView]) -> Turns:
    ended = [call for call in calls if call.outcome not in (*_NOT_MADE, _OPEN)]
    n_lost = sum(1 for call in ended if call.outcome != Outcome.USED.value)
    return Turns(
        n_calls=len(ended),
        n_lost=n_lost,
        lost_turns_percent=round(100 * n_lost / len(ended), 1) if ended else None,
        tokens=sum(call.prompt_tokens + call.completion_tokens for call in calls),
        cost_usd=sum(call.cost_usd or 0.0 for call in calls),
        n_without_price=sum(1 for call in ended if call.cost_usd is None),
    )
