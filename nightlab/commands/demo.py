"""`nightlab demo`: a whole research session on real training."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

EPILOG = """\b
Examples:
  nightlab demo           the whole of it, under six minutes on two cores
  nightlab demo --short   the same with fewer trials
  nightlab demo --keep    leave its folder behind, to look into"""

app = typer.Typer(rich_markup_mode=None, add_completion=False, context_settings={"help_option_names": ["-h", "--help"]})


@app.command(epilog=EPILOG)
def demo(
    short: Annotated[bool, typer.Option("--short", help="Fewer trials and seeds.")] = False,
    home: Annotated[Path | None, typer.Option("--home", help="Folder for it.", show_default="a temporary one")] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep a temporary folder, with runtime, records and report.")
    ] = False,
) -> None:
    """Run a whole research session on real training, and show it live.

    Starts a runtime and an MLflow server of its own, searches with real training jobs, lets an urgent job through
    half-way, and ends with a report. No GPU and no model key are needed; nothing is left running.
    """
    from nightlab.demo import run_demo

    raise typer.Exit(run_demo(short=short, home=home, keep=keep))
