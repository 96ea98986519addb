"""The door through which a language model's client pays: asked before each call, told after it. Fenced and durable.

What a call may use at most is booked when it is granted, and corrected to what it did use. So calls that run side by
side can not overdraw a budget together, and a process that is killed during a call has paid for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from agent.llm.chat import Outcome, Trouble, Usage
from agent.planner.budget import CallNeed, Spend, answer_granted, usd_of
from agent.store.calls import CallBook, CallFacts, Ended, Used
from agent.store.views import SessionView
from agent.task import Prices, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Permit:
    """The answer to one question: whether a call may be made, and what was booked for it."""

    call_id: int
    refusal: str | None
    """Which budget has no room, with the sum in words; None: the call may be made."""
    max_tokens: int
    """Of the answer: as wished, or as much as the budgets have room for."""
    booked: Used
    price: Prices | None

    @property
    def is_granted(self) -> bool:
        return self.refusal is None


class Spending:
    """Of one session. May be used from several threads."""

    def __init__(self, task: Task, calls: CallBook, running_device_seconds: Callable[[], float] = lambda: 0.0) -> None:
        """
        Args:
            running_device_seconds: what trials in flight have used so far, for budgets of money and device time.
        """
        self._task = task
        self._calls = calls
        self._running_device_seconds = running_device_seconds

    def begin(self, facts: CallFacts, need: CallNeed) -> Permit:
        """Ask before a call.

        Raises:
            FenceLost: another process works on the session; nothing was booked.
        """
        running_s = self._running_device_seconds()

        def decide(session: SessionView) -> Used | str:
            spend = replace(Spend.of(session), device_seconds=session.device_seconds + running_s)
            granted = answer_granted(self._task.budgets, spend, need)
            if isinstance(granted, str):
                return granted
            return _used(need.price, need.prompt_tokens, granted)

        call_id, decided = self._calls.begin(facts, decide, Trouble.OVER_BUDGET.value)
        is_refused = isinstance(decided, str)
        booked = Used() if isinstance(decided, str) else decided
        return Permit(
            call_id=call_id,
            refusal=decided if isinstance(decided, str) else None,
            max_tokens=0 if is_refused else booked.completion_tokens,
            booked=booked,
            price=need.price,
        )

    def end(
        self,
        permit: Permit,
        outcome: Outcome | Trouble,
        *,
        usage: Usage | None,
        took_s: float,
        model: str | None = None,
        note: str | None = None,
    ) -> None:
        """Tell after a call how it ended and what it used, once for each permit that was granted.

        Args:
            usage: None: nobody knows; what was booked stays.

        Raises:
            FenceLost: another process works on the session; what was booked stays.
        """
        used = permit.booked if usage is None else _used(permit.price, usage.prompt_tokens, usage.completion_tokens)
        ended = Ended(outcome=outcome.value, used=used, took_s=took_s, model=model, note=note)
        self._calls.end(permit.call_id, ended)

    def judge(self, call_id: int, outcome: Outcome, note: str | None) -> None:
        """Tell what became of a reply.

        Raises:
            FenceLost: another process works on the session.
        """
        self._calls.judge(call_id, outcome.value, note)


def _used(price: Prices | None, prompt_tokens: int, completion_tokens: int) -> Used:
    return Used(
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
        cost_usd=usd_of(price, prompt_tokens, completion_tokens),
    )
