"""`nightlab sweep notify`: a test message to everybody whom a sweep file names."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from nightlab.failure import work_failed, wrong_use
from nightlab.output import note, print_json

from .options import JsonOption

NOTIFY_EPILOG = "Example:  nightlab sweep notify digits.yaml --test"


def notify(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Sweep file.", show_default=False)],
    test: Annotated[bool, typer.Option("--test", help="Send a test message now.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Tell whom the nights of a sweep are told to; with --test, send each of them a message now.

    Exit code 1 when one of them was not told.
    """
    from agent.sweeps.notice import trial_notice
    from agent.sweeps.sweep_file import SweepError, load_sweep
    from agent.sweeps.telling import tell

    try:
        sweep = load_sweep(file)
    except SweepError as error:
        path = error.problems[0].path if error.problems else None
        raise wrong_use(str(error), code="bad_sweep", path=path) from error
    if not sweep.notify:
        raise wrong_use(
            f"{file}: nobody is told of its nights. Add for example: notify: [{{url: 'mailto://...'}}]",
            code="nobody_to_tell",
            path="notify",
        )
    if not test:
        _print_addresses(sweep.sweep, [address.on for address in sweep.notify], as_json)
        return
    message = trial_notice(sweep.sweep)
    done = tell([(address, message) for address in sweep.notify], folder=file.resolve().parent)
    if as_json:
        print_json([asdict(one) | {"is_sent": one.is_sent} for one in done])
    else:
        for one in done:
            print(one.words)
    n_lost = sum(not one.is_sent for one in done)
    if n_lost and as_json:
        raise typer.Exit(1)
    if n_lost:
        raise work_failed(f"{n_lost} of {len(done)} addresses could not be told", code="not_told")


def _print_addresses(sweep: str, wanted: list[tuple[str, ...]], as_json: bool) -> None:
    """Addresses hold secrets, so they are counted and not shown."""
    if as_json:
        print_json({"sweep": sweep, "addresses": [{"on": list(on)} for on in wanted]})
        return
    for place, on in enumerate(wanted, start=1):
        print(f"address {place}: {', '.join(on) or 'never'}")
    note("send each of them a message:  add --test")
