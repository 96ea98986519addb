"""`nightlab allow --all-agents`: gives the agents their right to submit back."""

from __future__ import annotations

from typing import Annotated

import typer

from nightlab.failure import wrong_use
from nightlab.output import print_json

from .options import HomeOption, JsonOption, runtime

app = typer.Typer(rich_markup_mode=None, add_completion=False, context_settings={"help_option_names": ["-h", "--help"]})


@app.command(epilog="Example:  nightlab allow --all-agents")
def allow(
    all_agents: Annotated[bool, typer.Option("--all-agents", help="Every session; there is no other choice.")] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let research sessions submit again, after `nightlab stop --all-agents`."""
    if not all_agents:
        raise wrong_use("say --all-agents.", code="no_choice")
    with runtime(home) as client:
        held = client.allow_agents()
    if as_json:
        print_json(held)
    else:
        print("sessions may submit")
