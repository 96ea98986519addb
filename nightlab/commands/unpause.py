"""`nightlab unpause`: lifts a hold."""

from __future__ import annotations

import typer

from nightlab.output import print_json

from .options import HomeOption, JsonOption, runtime
from .selectors import AllOption, ClassOption, ProjectOption, SessionOption, print_holds, selector

app = typer.Typer(rich_markup_mode=None, add_completion=False, context_settings={"help_option_names": ["-h", "--help"]})


@app.command(epilog="Example:  nightlab unpause --class exploratory")
def unpause(
    everything: AllOption = False,
    class_name: ClassOption = None,
    session: SessionOption = None,
    project: ProjectOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Lift the hold that `nightlab pause` put there with the same selector; others stay."""
    scope, name = selector(everything, class_name, session, project)
    with runtime(home) as client:
        held = client.unpause(scope, name)
    if as_json:
        print_json(held)
    else:
        print_holds(held)
