"""The door through which a language model's client pays: asked before each call, told after it. Fenced and durable.

What a call may use at most is booked when it is granted, and corrected to what it did use. So calls that run side by
side can not overdraw a budget together, and a process that is killed during a call has paid for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agent.planner.budget import Spend, refusal_of_a_call
from agent.store.record import SessionRecord
from agent.store.views import SessionView
from agent.task import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Permit:
    """The answer to one question: whether a call may be made, and what was booked for it."""

    refusal: str | None
    """Which budget has no room, with the sum in words; None: the call may be made."""
    tokens: int
    cost_usd: float

    @property
    def is_granted(self) -> bool:
        return self.refusal is None


class Spending:
    """Of one session. May be used from several threads."""

    def __init__(
        self, task: Task, record: SessionRecord, running_device_seconds: Callable[[], float] = lambda: 0.0
    ) -> None:
        """
        Args:
            running_device_seconds: what trials in flight have used so far, for budgets of money and device time.
        """
        self._task = task
        self._record = record
        self._running_device_seconds = running_device_seconds

    def can_spend(self, tokens: int, cost_usd: float = 0.0) -> Permit:
        """Ask before a call.

        Args:
            tokens: what it may use at most, both ways.
            cost_usd: what it may cost at most.

        Raises:
            FenceLost: another process works on the session; nothing was booked.
        """
        running_s = self._running_device_seconds()

        def objection(session: SessionView) -> str | None:
            spend = Spend(
                device_seconds=session.device_seconds + running_s,
                wall_seconds=session.wall_seconds,
                n_trials=session.n_trials,
                tokens=session.tokens,
                model_cost_usd=session.cost_usd,
            )
            return refusal_of_a_call(self._task.budgets, spend, tokens=tokens, more_usd=cost_usd)

        refusal = self._record.book_model_spend(tokens, cost_usd, objection)
        booked = refusal is None
        return Permit(refusal=refusal, tokens=tokens if booked else 0, cost_usd=cost_usd if booked else 0.0)

    def spent(self, permit: Permit, tokens: int, cost_usd: float = 0.0) -> None:
        """Tell after a call what it used, also when it failed; once for each permit.

        Raises:
            FenceLost: another process works on the session; what was booked stays.
        """
        self._record.book_model_spend(tokens - permit.tokens, cost_usd - permit.cost_usd, lambda session: None)
