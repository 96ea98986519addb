"""How a search went on: its measured trials in the order in which they ended, and the best so far. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agent.store.views import TrialView

from .facts import is_measured


def measured_in_order(trials: Iterable[TrialView]) -> list[TrialView]:
    """Those with a value that can be compared, in the order in which they ended."""
    return sorted((t for t in trials if is_measured(t)), key=order_of_end)


def order_of_end(trial: TrialView) -> tuple[float, int]:
    return trial.ended_at or 0.0, trial.number


def running_best(values: Sequence[float], *, is_maximized: bool) -> list[float]:
    """The best of the values up to each one."""
    found: list[float] = []
    for value in values:
        if not found:
            found.append(value)
        else:
            found.append(max(found[-1], value) if is_maximized else min(found[-1], value))
    return found


def records(values: Sequence[float], *, is_maximized: bool) -> list[int]:
    """Places of the values that were better than all before them."""
    running = running_best(values, is_maximized=is_maximized)
    return [at for at in range(len(values)) if at == 0 or running[at] != running[at - 1]]
