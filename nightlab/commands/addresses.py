"""Who is told, as a file says it: listed without secrets, or sent a test message each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from nightlab.failure import work_failed, wrong_use
from nightlab.output import note, print_json

if TYPE_CHECKING:
    from agent.notices.notice import Notice
    from agent.task import Address


def list_or_test(
    named: Mapping[str, str],
    addresses: Sequence[tuple[Address, Sequence[str]]],
    message: Notice,
    *,
    folder: Path,
    is_test: bool,
    as_json: bool,
) -> None:
    """Say what each address is told of; with `is_test`, send each of them the message now.

    Args:
        named: what the file is of and its name, `{"sweep": "digits"}`.
        addresses: with the occasions that each wants.
        folder: what the files with addresses are relative to.

    Raises:
        Failure: one of them was not told.
    """
    if not is_test:
        _print_addresses(named, [on for _, on in addresses], as_json)
        return
    from agent.notices.telling import tell

    done = tell([(address, message) for address, _ in addresses], folder=folder)
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


def refuse_if_nobody(addresses: Sequence[object], file: Path, of_what: str) -> None:
    """
    Raises:
        Failure: the file names nobody.
    """
    if not addresses:
        raise wrong_use(
            f"{file}: nobody is told of {of_what}. Add for example: notify: [{{url: 'mailto://...'}}]",
            code="nobody_to_tell",
            path="notify",
        )


def _print_addresses(named: Mapping[str, str], wanted: Sequence[Sequence[str]], as_json: bool) -> None:
    """Addresses hold secrets, so they are counted and not shown."""
    if as_json:
        print_json({**named, "addresses": [{"on": list(on)} for on in wanted]})
        return
    for place, on in enumerate(wanted, start=1):
        print(f"address {place}: {', '.join(on) or 'never'}")
    note("send each of them a message:  add --test")
