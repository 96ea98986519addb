"""`nightlab spend`: where device time went, and what it cost."""

from __future__ import annotations

import time
from enum import StrEnum
from typing import Annotated

import typer

from nightlab.failure import wrong_use
from nightlab.output import print_json, print_table

from .options import HomeOption, JsonOption, runtime

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
    rows = [
        (
            row.name,
            *(_hours(getattr(row.device_seconds, part)) for part in PARTS),
            _hours(row.device_seconds.total),
            "" if row.cost is None else f"{row.cost.total:.2f}",
        )
        for row in found.rows
    ]
    if rows:
        print_table((by.value, "#useful", "#replicate", "#lost", "#failed", "#device-hours", "#cost"), rows)
    else:
        print("no device was held in this time")
    print(f"idle: {_hours(found.idle_device_seconds)} device-hours")
    if found.unpriced_kinds:
        print(f"without a price, and not in the cost: {', '.join(found.unpriced_kinds)}")


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:.2f}"
