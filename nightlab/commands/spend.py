"""`nightlab spend`: where device time went, and what it cost."""

from __future__ import annotations

import time
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from nightlab.failure import wrong_use
from nightlab.output import print_json, print_table

from .options import HomeOption, JsonOption, runtime

if TYPE_CHECKING:
    from runtime_client.models import SpendRow

PARTS = ("useful", "replicate", "lost_to_preemption", "failed")

app = typer.Typer(rich_markup_mode=None, add_completion=False, context_settings={"help_option_names": ["-h", "--help"]})


class By(StrEnum):
    """As `runtime_client.models.SpendBy`, which costs an import of pydantic; a test compares them."""

    SESSION = "session"
    USER = "user"
    PROJECT = "project"


@app.command(epilog="Example:  nightlab spend --by session --since 7d")
def spend(
    by: Annotated[By, typer.Option(help="Whose accounts.")] = By.PROJECT,
    since: Annotated[str, typer.Option(help="How far back: 12h, 7d.", metavar="TIME")] = "7d",
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show device-hours, by what became of them, and their cost where `nightlab up --price` sets prices.

    Useful: kept, or still running. Replicate: the same, of trials repeated with a fresh seed. Lost: after the last
    checkpoint of what left for other jobs, a pause or a drain. Failed: of jobs that failed or were cancelled.
    """
    from nightlab.moments import span
    from runtime_client.models import SpendBy

    length_s = span(since)
    if length_s is None:
        raise wrong_use(f"--since {since!r} is no length of time; write 12h or 7d.", code="bad_time", path="since")
    with runtime(home) as client:
        found = client.spend(by=SpendBy(by.value), since=max(0.0, time.time() - length_s))
    if as_json:
        print_json(found)
        return
    _print_rows(by.value, found.rows)
    held_s = sum(row.device_seconds.total for row in found.rows)
    there_s = held_s + found.idle_device_seconds
    share = f", {100 * found.idle_device_seconds / there_s:.0f} % of what there was" if there_s else ""
    print(f"idle: {_hours(found.idle_device_seconds)} device-hours{share}")
    if found.unpriced_kinds:
        print(f"without a price, and not in the cost: {', '.join(found.unpriced_kinds)}")


def _print_rows(group: str, rows: Sequence[SpendRow]) -> None:
    """The cost has a column where there are prices."""
    if not rows:
        print("no device was held in this time")
        return
    has_cost = any(row.cost is not None for row in rows)
    cells = [
        (
            row.name,
            *(_hours(getattr(row.device_seconds, part)) for part in PARTS),
            _hours(row.device_seconds.total),
            *([f"{row.cost.total:.2f}" if row.cost is not None else ""] if has_cost else []),
        )
        for row in rows
    ]
    cost = ("#cost",) if has_cost else ()
    print_table((group, "#useful", "#replicate", "#lost", "#failed", "#device-hours", *cost), cells)


def _hours(seconds: float) -> str:
    """Device-hours, to three digits where they are few: a minute on one device is 0.0167."""
    hours = seconds / 3600
    return f"{hours:.2f}" if hours >= 1 or not hours else f"{hours:.3g}"
