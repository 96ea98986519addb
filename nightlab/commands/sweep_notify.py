"""`nightlab sweep notify`: a test message to everybody whom a sweep file names."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .addresses import list_or_test, refuse_if_nobody
from .options import JsonOption
from .sweep_argument import read_sweep

NOTIFY_EPILOG = "Example:  nightlab sweep notify digits.yaml --test"


def notify(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Sweep file.", show_default=False)],
    test: Annotated[bool, typer.Option("--test", help="Send a test message now.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Tell whom the nights of a sweep are told to; with --test, send each of them a message now.

    Exit code 1 when one of them was not told.
    """
    from agent.notices.notice import trial_notice

    sweep = read_sweep(file)
    refuse_if_nobody(sweep.notify, file, "its nights")
    list_or_test(
        {"sweep": sweep.sweep},
        [(address, address.on) for address in sweep.notify],
        trial_notice(sweep.sweep, "The nights of this sweep"),
        folder=file.resolve().parent,
        is_test=test,
        as_json=as_json,
    )
