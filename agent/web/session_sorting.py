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


_NUMBERS: dict[Order, Callable[[TrialView], float | None]] = {
    Order.NUMBER: lambda trial: trial.number,
    Order.VALUE: lambda trial: trial.value if trial.value is not None and math.isfinite(trial.value) else None,
    Order.DEVICE_SECONDS: lambda trial: trial.device_seconds,
    Order.ENDED_AT: lambda trial: trial.ended_at,
}
_NAMES: dict[Order, Callable[[TrialView], str]] = {
    Order.SUGGESTED_BY: lambda trial: trial.suggested_by,
    Order.STATE: lambda trial: trial.state.value,
}


def sorted_trials(trials: Sequence[TrialView], order: Order, *, descending: bool) -> list[TrialView]:
    """Those that lack what is sorted by come last, either way; equals in the order of their numbers."""
    if order in _NAMES:
        return sorted(trials, key=_NAMES[order], reverse=descending)
    found = [(_NUMBERS[order](trial), trial) for trial in trials]
    known = [(key, trial) for key, trial in found if key is not None]
    known.sort(key=lambda one: one[0], reverse=descending)
    return [trial for _, trial in known] + [trial for key, trial in found if key is None]
