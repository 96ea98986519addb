"""`nightlab research notify`: a test message to everybody whom a task file names."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .addresses import list_or_test, refuse_if_nobody
from .options import JsonOption
from .task_argument import read_task

NOTIFY_EPILOG = "Example:  nightlab research notify task.yaml --test"


def notify(
    task_file: Annotated[Path, typer.Argument(metavar="TASK.yaml", help="Task file.", show_default=False)],
    test: Annotated[bool, typer.Option("--test", help="Send a test message now.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Tell whom the sessions of a task are told to; with --test, send each of them a message now.

    Exit code 1 when one of them was not told.
    """
    from agent.notices.notice import trial_notice

    task = read_task(task_file)
    refuse_if_nobody(task.notify, task_file, "its sessions")
    list_or_test(
        {"task": task.task},
        [(address, address.on) for address in task.notify],
        trial_notice(task.task, "The sessions of this task"),
        folder=task_file.resolve().parent,
        is_test=test,
        as_json=as_json,
    )
