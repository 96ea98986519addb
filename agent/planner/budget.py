"""Budgets: five hard limits of the task, and when the search must stop so that the answer can be paid for. Pure.

A limit stops what uses it: tokens stop the language model, money stops the model and, where device time has a price,
trials too. What is in flight when a limit is reached is finished, nothing more is started: so a budget is overdrawn by
what is in flight at most.
"""

from __future__ import annotations

from dataclasses import dataclass

from agent.planner.held_out import n_looks
from agent.planner.history import History
from agent.planner.seeds import is_fresh
from agent.store.views import SessionView, TrialState
from agent.task import Budgets, Prices, Task

HOUR_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Spend:
    """What is used so far."""

    device_seconds: float
    """Of all trials, those in flight included."""
    wall_seconds: float
    n_slots: int = 1
    """Trials that run at once."""
    n_trials: int = 0
    """Search trials proposed."""
    tokens: int = 0
    """Of language models, both ways; what was granted to a call that is under way counts."""
    model_cost_usd: float = 0.0
    """Of language models alone; as `tokens`."""
    refusal: str | None = None
    """What the runtime said when a budget of device time had no room for a trial; None: it has not."""
    exhausted: str | None = None
    """Why no proposer has anything new, in words; None: some have, or nobody was asked."""
    hour_left_s: float | None = None
    """Until the hour by which the session has to be over; None: it has none."""

    @classmethod
    def of(cls, session: SessionView) -> Spend:
        """As its row says: what ended, and what was booked for models."""
        return cls(
            device_seconds=session.device_seconds,
            wall_seconds=session.wall_seconds,
            n_trials=session.n_trials,
            tokens=session.tokens,
            model_cost_usd=session.cost_usd,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cap:
    """One limit and what is used of it, in the unit of the task file."""

    name: str
    """As in the task file: `budgets.<name>`."""
    used: float
    limit: float | None
    """None: no limit."""

    @property
    def is_reached(self) -> bool:
        return self.limit is not None and self.used >= self.limit

    @property
    def words(self) -> str:
        """`budgets.cost_usd: 1.25 of 2 are used`."""
        used = f"{self.used:.2f}" if self.name == "cost_usd" else f"{self.used:.1f}".removesuffix(".0")
        shown = f"{self.used:.0f}" if self.name in ("device_seconds", "tokens", "trials") else used
        limit = "" if self.limit is None else f" of {self.limit:g}"
        return f"budgets.{self.name}: {shown}{limit} are used"


def caps(budgets: Budgets, spend: Spend) -> tuple[Cap, ...]:
    """All five, in the order of the task file, limited or not."""
    return (
        Cap(name="trials", used=spend.n_trials, limit=budgets.trials),
        Cap(name="wall_minutes", used=spend.wall_seconds / 60, limit=budgets.wall_minutes),
        Cap(name="device_seconds", used=spend.device_seconds, limit=budgets.device_seconds),
        Cap(name="tokens", used=spend.tokens, limit=budgets.tokens),
        Cap(name="cost_usd", used=cost_usd(budgets, spend), limit=budgets.cost_usd),
    )


def cost_usd(budgets: Budgets, spend: Spend) -> float:
    """Language models, and device time where it has a price."""
    return spend.model_cost_usd + spend.device_seconds / HOUR_S * (budgets.usd_per_device_hour or 0.0)


def is_device_time_limited(budgets: Budgets) -> bool:
    """By itself, or by what it costs."""
    return device_seconds_at_most(budgets) is not None


def device_seconds_at_most(budgets: Budgets) -> float | None:
    """What the devices may be used when nothing else costs anything; None: without limit."""
    limits = [] if budgets.device_seconds is None else [budgets.device_seconds]
    if budgets.cost_usd is not None and budgets.usd_per_device_hour is not None:
        limits.append(budgets.cost_usd / budgets.usd_per_device_hour * HOUR_S)
    return min(limits, default=None)


def spent(task: Task, spend: Spend) -> str | None:
    """The budget that is used up and forbids further trials, in words; None: there is room."""
    if spend.refusal is not None:
        return spend.refusal
    is_priced = task.budgets.usd_per_device_hour is not None
    stops = {"wall_minutes", "device_seconds", *(("cost_usd",) if is_priced else ())}
    return next((cap.words for cap in caps(task.budgets, spend) if cap.name in stops and cap.is_reached), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallNeed:
    """What one call of a language model is about to use."""

    prompt_tokens: int
    """Estimated."""
    max_tokens: int
    """Of the answer, as it is wished."""
    least_tokens: int
    """Of the answer: with less it is not worth asking."""
    price: Prices | None
    """None: unknown, so money does not limit it."""


def usd_of(price: Prices | None, prompt_tokens: int, completion_tokens: int) -> float | None:
    """What so many tokens cost; None: the price is unknown."""
    if price is None:
        return None
    return (prompt_tokens * price.prompt + completion_tokens * price.completion) / 1e6


def refusal_of_a_call(budgets: Budgets, spend: Spend, *, tokens: int, more_usd: float) -> str | None:
    """Why a language model may not be asked, with the sum in words; None: it may.

    Args:
        tokens: what the call is expected to use at most, both ways.
        more_usd: what it is expected to cost at most.
    """
    for cap in caps(budgets, spend):
        if cap.limit is None or cap.name == "trials":
            continue
        more = {"tokens": float(tokens), "cost_usd": more_usd}.get(cap.name, 0.0)
        if cap.is_reached or cap.used + more > cap.limit:
            needs = f", and this call may need {more:g} more" if more else ""
            return cap.words + needs
    return None


def answer_granted(budgets: Budgets, spend: Spend, need: CallNeed) -> int | str:
    """How many tokens the answer of a language model may have at most, or why it may not be asked, with the sum.

    What is left of the budgets has to be enough for the worst case: the whole prompt, and an answer of that length. A
    long answer is cut to what is left, down to `least_tokens`.
    """
    least = min(need.least_tokens, need.max_tokens)
    more_usd = usd_of(need.price, need.prompt_tokens, least) or 0.0
    refusal = refusal_of_a_call(budgets, spend, tokens=need.prompt_tokens + least, more_usd=more_usd)
    if refusal is not None:
        return refusal
    return max(least, min(need.max_tokens, *_answer_rooms(budgets, spend, need)))


def _answer_rooms(budgets: Budgets, spend: Spend, need: CallNeed) -> list[int]:
    """Tokens of an answer that each budget has room for, beside the prompt."""
    rooms = [need.max_tokens]
    if budgets.tokens is not None:
        rooms.append(budgets.tokens - spend.tokens - need.prompt_tokens)
    if budgets.cost_usd is not None and need.price is not None and need.price.completion > 0:
        left_usd = budgets.cost_usd - cost_usd(budgets, spend) - (usd_of(need.price, need.prompt_tokens, 0) or 0.0)
        rooms.append(int(left_usd / need.price.completion * 1e6))
    return rooms


def reserve_reached(task: Task, history: History, spend: Spend) -> str | None:
    """Whether what is left is needed for the fresh seeds and the held-out looks, in words; None: the search goes on.

    Estimated from the mean of the measured trials; without any, the search goes on.
    """
    mean_s = mean_device_seconds(history)
    if mean_s is None or not task.search.confirm:
        return None
    n_left = _n_confirming_left(task, history)
    n_in_flight = len(history.in_flight)
    left_s = device_seconds_left(task.budgets, spend)
    if left_s is not None and left_s <= mean_s * (n_left + n_in_flight / 2):
        return f"the {left_s:.0f} device-seconds left are needed for {n_left} confirming trials"
    until_s = seconds_left(task.budgets, spend)
    if until_s is not None:
        trial_s = mean_s / task.job.compute.num_accelerators
        if until_s <= trial_s * (1 + (n_left + n_in_flight / 2) / max(spend.n_slots, 1)):
            return f"the {until_s:.0f} seconds left are needed for {n_left} confirming trials"
    return None


def seconds_left(budgets: Budgets, spend: Spend) -> float | None:
    """Of wall time, and until the hour by which the session has to be over; None: without limit."""
    left = [] if budgets.wall_minutes is None else [budgets.wall_minutes * 60 - spend.wall_seconds]
    if spend.hour_left_s is not None:
        left.append(spend.hour_left_s)
    return min(left, default=None)


def n_confirming(task: Task) -> int:
    """Trials after the search that the answer needs: the first pairs and the looks; none where nothing is confirmed.

    Where code is edited, the code that the best was made from runs beside it.
    """
    n_sides = 2 if task.code is None else 3
    return n_sides * task.seeds.fresh + n_looks(task) if task.search.confirm else 0


def mean_device_seconds(history: History) -> float | None:
    """Of one measured trial; None: there is none yet."""
    seconds = [t.device_seconds for t in history.trials if t.state is TrialState.MEASURED and t.device_seconds > 0]
    return sum(seconds) / len(seconds) if seconds else None


def device_seconds_left(budgets: Budgets, spend: Spend) -> float | None:
    """By the budget of device time and by that of money; None: without limit."""
    left = [] if budgets.device_seconds is None else [budgets.device_seconds - spend.device_seconds]
    if budgets.cost_usd is not None and budgets.usd_per_device_hour is not None:
        left.append((budgets.cost_usd - cost_usd(budgets, spend)) / budgets.usd_per_device_hour * HOUR_S)
    return min(left, default=None)


def _n_confirming_left(task: Task, history: History) -> int:
    n_fresh = sum(1 for _, seed in history.replicates if is_fresh(task, seed))
    return max(n_confirming(task) - n_fresh - len(history.held_out), 0)
