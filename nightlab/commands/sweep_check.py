"""`nightlab sweep check`: all that is wrong with a sweep file, before a night is lost to it. Changes nothing."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nightlab.failure import ExitCode
from nightlab.moments import moment
from nightlab.output import plural, print_json

from .options import JsonOption
from .sweep_argument import examined

if TYPE_CHECKING:
    from agent.sweeps.prepare import Examined
    from agent.task_checks import Problem

CHECK_EPILOG = "Example:  nightlab sweep check examples/digits/sweep.yaml"


def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Sweep file.", show_default=False)],
    python: Annotated[
        str | None, typer.Option(help="Python of the jobs, where the task names none.", metavar="PATH")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Tell all that is wrong with a sweep, each by its place in the file, and start nothing.

    Reads the tasks that it names, its times, its code and data versions, the files with addresses. Exit 2 if no night
    could be made of it or somebody could not be told. Whether a trial runs: nightlab research check TASK.yaml.
    """
    from agent.sweeps.sweep_file import SweepError

    try:
        found: Examined | None = examined(file, python)
        assert found is not None
        problems: tuple[Problem, ...] = (*found.problems, *found.addresses)
    except SweepError as error:
        found, problems = None, tuple(error.problems)
    if as_json:
        print_json(_data(file, found, problems))
    else:
        _print(file, found, problems)
    if problems:
        raise typer.Exit(ExitCode.WRONG_USE)


def _data(file: Path, found: Examined | None, problems: tuple[Problem, ...]) -> dict[str, object]:
    night = None if found is None else found.night
    return {
        "file": str(file.expanduser().resolve()),
        "sweep": None if night is None else night.sweep.sweep,
        "problems": [asdict(one) for one in problems],
        "notes": [] if night is None else [asdict(one) for one in night.notes],
        "cells": [] if night is None else [cell.name for cell in night.cells],
        "finish_by": None if night is None else night.finish_by,
        "outside": None if night is None else night.outside,
    }


def _print(file: Path, found: Examined | None, problems: tuple[Problem, ...]) -> None:
    for one in problems:
        print(f"{one.path}: {one.message}" if one.path else one.message)
    night = None if found is None else found.night
    for one in () if night is None else night.notes:
        print(f"note: {one.path}: {one.message}")
    if problems or night is None:
        print(f"{file}: {plural(len(problems), 'problem')}; no night can be run as the file says")
        return
    hour = "" if night.finish_by is None else f", over by {moment(night.finish_by)} if it started now"
    print(f"{night.sweep.sweep} can run: {plural(len(night.cells), 'cell')}{hour}")
    if night.outside is not None:
        print(f"a start now would do nothing: {night.outside}")
