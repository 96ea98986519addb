"""How `nightlab lab` shows its sessions to a person."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nightlab.output import duration, note, plural, print_table, print_words

if TYPE_CHECKING:
    from nightlab.lab.outcome import Found, Spread


def print_lab(found: Sequence[Found], *, world: str, n_devices: int, took_s: float) -> None:
    from nightlab.lab.outcome import summary_of

    rows = [
        (
            one.draw,
            one.state,
            one.verdict,
            _number(one.said),
            _number(one.truth),
            _number(one.default_truth),
            _number(one.regret, 3),
            f"{one.false_claims} of {one.claims}" if one.claims else "-",
            one.n_trials,
            f"{one.device_hours:.2f}",
            f"{one.busy_percent:.0f} %",
            one.n_preemptions,
            duration(one.span_s),
        )
        for one in found
    ]
    columns = ("#seed", "state", "verdict", "#said", "#truth", "#default", "#regret", "#false claims")
    more = ("#trials", "#device-h", "#busy", "#preempted", "#took")
    print_table((*columns, *more), rows, state_column=1)
    for text in {one.message for one in found if one.state != "finished"}:
        note(text)
    total = summary_of(found)
    hours = total.device_hours_per_true_gain
    print()
    print_words(
        f"{plural(total.n_sessions, 'session')} on {world}: {plural(total.claims, 'claimed gain')}, "
        f"{total.false_claims} false, {total.true_gains} true"
        + ("." if hours is None else f"; {hours:.2f} device-hours for each true gain.")
    )
    print_words(f"Regret {_spread(total.regret, 3)}, busy {_spread(total.busy_percent, 0)} % (median and quartiles).")
    note(f"{plural(n_devices, 'device')}, virtual time; took {took_s:.1f} s")


def _number(value: float | None, digits: int = 4) -> str | None:
    return None if value is None else f"{value:.{digits}g}" if digits == 4 else f"{value:.{digits}f}"


def _spread(spread: Spread, digits: int) -> str:
    if spread.median is None or spread.low is None or spread.high is None:
        return "unknown"
    return f"{spread.median:.{digits}f} ({spread.low:.{digits}f} to {spread.high:.{digits}f})"
