"""`nightlab pause`: the stop button for jobs."""

from __future__ import annotations

from typing import Annotated

import typer

from nightlab.output import print_json

from .options import HomeOption, JsonOption, runtime
from .selectors import AllOption, ClassOption, ProjectOption, SessionOption, print_holds, selector

app = typer.Typer(rich_markup_mode=None, add_completion=False, context_settings={"help_option_names": ["-h", "--help"]})


@app.command(epilog="Example:  nightlab pause --class exploratory --reason 'a deadline tonight'")
def pause(
    reason: Annotated[str, typer.Option(help="Kept and shown.", metavar="TEXT", show_default=False)],
    everything: AllOption = False,
    class_name: ClassOption = None,
    session: SessionOption = None,
    project: ProjectOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Checkpoint and hold matching jobs, until `nightlab unpause`.

    What runs gets its notice and its grace, and keeps its place and its checkpoint; nothing matching is started.
    Survives restarts. Works without the agent service.
    """
    scope, name = selector(everything, class_name, session, project)
    with runtime(home) as client:
        held = client.pause(scope, name, reason=reason)
    if as_json:
        print_json(held)
    else:
        print_holds(held)
