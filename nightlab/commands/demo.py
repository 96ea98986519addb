"""`nightlab demo`: a whole research session on real training."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import check_devices

EPILOG = """\b
Examples:
  nightlab demo           the whole of it, under six minutes on two cores
  nightlab demo --short   the same with fewer trials and seeds"""

app = typer.Typer(rich_markup_mode=None, add_completion=False, context_settings={"help_option_names": ["-h", "--help"]})


@app.command(epilog=EPILOG)
def demo(
    short: Annotated[bool, typer.Option("--short", help="Fewer trials and seeds.")] = False,
    home: Annotated[
        Path | None, typer.Option("--home", help="Folder to work in.", show_default="demo below the home folder")
    ] = None,
    devices: Annotated[
        str | None, typer.Option(help="As for nightlab up.", show_default="CPU slots", metavar="DEVICES")
    ] = None,
    screenshots: Annotated[
        Path | None, typer.Option(help="Save the live view and the report there.", metavar="FOLDER")
    ] = None,
) -> None:
    """Run a whole research session on real training, and show it live.

    Starts a runtime and an MLflow server of its own, searches with real training jobs, lets an urgent job through
    half-way, and ends with a report. No GPU and no model key are needed. Nothing is left running; the folder stays,
    with records and report. Ctrl-C stops in order, and the same command goes on from there.
    """
    if devices is not None:
        check_devices(devices)
    from nightlab.demo import run_demo

    raise typer.Exit(run_demo(short=short, home=home, screenshots=screenshots, devices=devices))
