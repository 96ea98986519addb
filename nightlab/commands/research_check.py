"""`nightlab research check`: whether a session on a task could succeed, before a night is spent on it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nightlab.failure import ExitCode, work_failed, wrong_use
from nightlab.output import note, print_json

from .options import HomeOption, JsonOption, home_folder, runtime
from .task_argument import read_task

if TYPE_CHECKING:
    from agent.task import Task

CHECK_EPILOG = """\b
Examples:
  nightlab research check examples/digits/task.yaml
  nightlab research check task.yaml --fidelity 2 --json"""


def check(
    task_file: Annotated[Path, typer.Argument(metavar="TASK.yaml", help="Task file.", show_default=False)],
    fidelity: Annotated[
        float | None,
        typer.Option(help="Train for so long instead of the task's fidelity.", metavar="N", show_default="the task's"),
    ] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Try a task before a night is spent on it.

    Three trials of the default (value, noise, time, memory), one more that is made to leave and come back, and the
    smallest gain that the budget can show. Exit 1 if a session could not succeed. Leaves nothing running.
    """
    from agent.pinned_scorer import ScorerRefused
    from agent.planner.readiness import judge
    from nightlab.task_check.page import check_data, print_check
    from nightlab.task_check.running import run_check

    task = _at(read_task(task_file), fidelity)
    folder = home_folder(home)
    with runtime(home) as client:
        n_devices = client.info().n_devices
        try:
            checked = run_check(client, task, folder, say=(lambda _: None) if as_json else note)
        except ScorerRefused as error:
            raise work_failed(str(error), code="scorer_refused") from error
    n_slots = task.slots or max(1, n_devices // task.job.compute.num_accelerators)
    readiness = judge(task, checked.runs, checked.preemption, n_slots=n_slots, is_other_fidelity=fidelity is not None)
    if as_json:
        print_json(check_data(checked, readiness))
    else:
        print_check(task, checked, readiness)
    if not readiness.can_succeed:
        raise typer.Exit(ExitCode.WORK_FAILED)


def _at(task: Task, fidelity: float | None) -> Task:
    """
    Raises:
        Failure: the task has no parameter that says how long a trial trains.
    """
    if fidelity is None:
        return task
    if task.fidelity is None:
        raise wrong_use(
            "--fidelity: the task names no parameter for it; add to the task file: "
            "fidelity: {parameter: epochs, value: 60}",
            code="no_fidelity",
            path="fidelity",
        )
    value = int(fidelity) if float(fidelity).is_integer() else fidelity
    return task.model_copy(update={"fidelity": task.fidelity.model_copy(update={"value": value})})
