"""`nightlab stop --all-agents`: takes every agent's right to submit."""

from __future__ import annotations

from typing import Annotated

import typer

from nightlab.failure import wrong_use
from nightlab.output import note, print_json

from .options import HomeOption, JsonOption, runtime
from .selectors import print_holds

app = typer.Typer(rich_markup_mode=None, add_completion=False, context_settings={"help_option_names": ["-h", "--help"]})


@app.command(epilog="Example:  nightlab stop --all-agents --reason 'look at this first'")
def stop(
    all_agents: Annotated[bool, typer.Option("--all-agents", help="Every session; there is no other choice.")] = False,
    reason: Annotated[str, typer.Option(help="Kept and shown.", metavar="TEXT")] = "stopped by the owner",
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Refuse what research sessions submit, at once, until `nightlab allow --all-agents`.

    Their jobs that are there already go on; `nightlab pause` holds those too. Works without the agent service.
    """
    if not all_agents:
        raise wrong_use(
            "say --all-agents; one session is stopped with nightlab research stop, everything with nightlab down.",
            code="no_choice",
        )
    with runtime(home) as client:
        held = client.stop_agents(reason=reason)
    if as_json:
        print_json(held)
        return
    print_holds(held)
    note("allow them again:  nightlab allow --all-agents")
