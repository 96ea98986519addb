"""Which jobs `pause` and `unpause` are about, and how what is held is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from nightlab.failure import wrong_use
from nightlab.output import plural

if TYPE_CHECKING:
    from runtime_client.models import Holds, HoldScope

AllOption = Annotated[bool, typer.Option("--all", help="All jobs.")]
ClassOption = Annotated[
    str | None, typer.Option("--class", help="Jobs of this priority class.", metavar="NAME", show_default=False)
]
SessionOption = Annotated[
    str | None, typer.Option("--session", help="Jobs of this research session.", metavar="S", show_default=False)
]
ProjectOption = Annotated[
    str | None, typer.Option("--project", help="Jobs of this project.", metavar="P", show_default=False)
]


def selector(
    everything: bool, class_name: str | None, session: str | None, project: str | None
) -> tuple[HoldScope, str | None]:
    """
    Raises:
        Failure: none or more than one is given.
    """
    from runtime_client.models import HoldScope

    named = {HoldScope.CLASS: class_name, HoldScope.SESSION: session, HoldScope.PROJECT: project}
    given = [(scope, name) for scope, name in named.items() if name is not None]
    if len(given) + everything != 1 or "" in named.values():
        raise wrong_use("give exactly one of --all, --class, --session, --project.", code="bad_selector")
    return (HoldScope.ALL, None) if everything else given[0]


def print_holds(held: Holds) -> None:
    for hold in held.holds:
        print(f"paused: {hold.selector} ({hold.reason})")
    if not held.holds:
        print("nothing is paused")
    if held.n_held or held.n_leaving:
        print(f"{plural(held.n_held, 'job')} on hold; {plural(held.n_leaving, 'attempt')} still checkpointing")
    if held.agents_stop is not None:
        print(f"all agents are stopped: {held.agents_stop.reason}")
