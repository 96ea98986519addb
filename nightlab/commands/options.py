"""Options that several commands share, and how they reach the runtime."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nightlab.failure import wrong_use

if TYPE_CHECKING:
    from runtime.scheduling.policy import Policy
    from runtime_client.client import RuntimeClient

HomeOption = Annotated[
    Path | None,
    typer.Option("--home", help="Home folder; NIGHTLAB_HOME, or ~/.nightlab if that is not set.", show_default=False),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON envelope instead of text.")]


def check_devices(text: str) -> None:
    """
    Raises:
        Failure: it is not of a form that the runtime knows.
    """
    from runtime.node.devices import find_devices

    try:
        if text != "auto":
            find_devices(text, {})
    except ValueError as error:
        raise wrong_use(f"--devices: {error}", code="bad_devices", path="devices") from error


def home_folder(given: Path | None) -> Path:
    """Absolute; need not exist.

    Raises:
        Failure: something else than a folder is there.
    """
    named = given or (Path(os.environ["NIGHTLAB_HOME"]) if os.environ.get("NIGHTLAB_HOME") else None)
    folder = (named or Path.home() / ".nightlab").expanduser().resolve()
    if folder.exists() and not folder.is_dir():
        raise wrong_use(
            f"the home folder {folder} is no folder; name another one with --home or NIGHTLAB_HOME.",
            code="bad_home",
            path="home",
        )
    return folder


def policy_at(path: Path) -> Policy:
    """The scheduling policy in a file.

    Raises:
        Failure: it can not be used; the message says which field and what is allowed.
    """
    from runtime.server.policy_file import BadPolicy, read_policy

    try:
        return read_policy(path)
    except BadPolicy as error:
        raise wrong_use(str(error), code="bad_policy", path="policy") from error


def seconds_of(option: str, text: str, *, may_be_never: bool = False, is_positive: bool = False) -> float | None:
    """A duration in virtual time, such as `10m`; None: `never`.

    Raises:
        Failure: it is none; the message names the option.
    """
    from runtime.simulator.errors import BadScenario
    from runtime.simulator.instants import parse_duration

    if may_be_never and text == "never":
        return None
    try:
        seconds = parse_duration(text)
    except BadScenario as error:
        raise wrong_use(f"--{option}: {error.message}", code="bad_time", path=option) from error
    if is_positive and seconds <= 0:
        raise wrong_use(f"--{option} must be more than 0", code="bad_time", path=option)
    return seconds


@contextmanager
def runtime(home: Path | None) -> Iterator[RuntimeClient]:
    """A client of the runtime of this home.

    Raises:
        RuntimeClientError: none runs; `nightlab.__main__` tells the person.
    """
    from runtime_client.client import RuntimeClient

    with RuntimeClient.from_home(home_folder(home)) as client:
        yield client
