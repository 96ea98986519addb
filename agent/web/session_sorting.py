"""The orders in which the table of trials can be read. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from enum import StrEnum

from agent.store.views import TrialView


class Order(StrEnum):
    NUMBER = "number"
    VALUE = "value"
    DEVICE_SECONDS = "device_seconds"
    ENDED_AT = "ended_at"
    SUGGESTED_BY = "suggested_by"
    STATE = "state"


_KEYS: dict[Order, Callable[[TrialView], float | str | None]] = {
    Order.NUMBER: lambda trial: trial.number,
    Order.VALUE: lambda trial: trial.value if trial.value is not None and math.isfinite(trial.value) else None,
    Order.DEVICE_SECONDS: lambda trial: trial.device_seconds,
    Order.ENDED_AT: lambda trial: trial.ended_at,
    Order.SUGGESTED_BY: lambda trial: trial.suggested_by,
    Order.STATE: lambda trial: trial.state.value,
}


def sorted_trials(trials: Sequence[TrialView], order: Order, *, descending: bool) -> list[TrialView]:
    """Those that lack what is sorted by come last, either way; equals in the order of their numbers."""
    key = _KEYS[order]
    known = [trial for trial in trials if key(trial) is not None]
    lacking = [trial for trial in trials if key(trial) is None]
    known.sort(key=key, reverse=descending)  # type: ignore[arg-type]
    return known + lacking
