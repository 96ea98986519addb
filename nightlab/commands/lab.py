"""`nightlab lab`: whole research sessions in virtual time. Needs no runtime and no training."""

from __future__ import annotations

import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nightlab.failure import work_failed, wrong_use
from nightlab.lab_page import print_lab
from nightlab.output import print_json

from .options import JsonOption, policy_at, seconds_of

if TYPE_CHECKING:
    from nightlab.lab.sessions import Lived, Setting

app = typer.Typer(rich_markup_mode=None, add_completion=False, context_settings={"help_option_names": ["-h", "--help"]})

EPILOG = "Example:  nightlab lab examples/digits/task.yaml --world synthetic:sphere --devices 8 --sessions 5"


@app.command(epilog=EPILOG)
def lab(
    task_file: Annotated[Path, typer.Argument(metavar="TASK", help="The task file of the sessions.")],
    world: Annotated[
        str,
        typer.Option(
            metavar="WORLD",
            help="What training gives: synthetic:sphere (or branin, noisy, heavy, coarse, cliff, null), "
            "a table (.csv), or recorded curves (.jsonl).",
        ),
    ] = "synthetic:sphere",
    devices: Annotated[
        str, typer.Option(metavar="DEVICES", help="8 (one node), or nodes as for nightlab simulate: 2x8xH100,4x4xA100.")
    ] = "8",
    sessions: Annotated[int, typer.Option(min=1, max=100_000, help="How many, each with another seed.")] = 1,
    together: Annotated[
        bool, typer.Option("--together", help="All on one cluster, side by side; else each on its own.")
    ] = False,
    urgent_every: Annotated[
        str | None, typer.Option(metavar="TIME", help="Critical jobs of others arrive so often on average: 10m.")
    ] = None,
    urgent_run: Annotated[str, typer.Option(metavar="TIME", help="How long such a job runs.")] = "10m",
    urgent_devices: Annotated[int, typer.Option(min=1, help="How many devices it takes.")] = 1,
    trials: Annotated[int | None, typer.Option(min=1, help="Instead of the task's budgets.trials.")] = None,
    policy: Annotated[
        Path | None, typer.Option(metavar="FILE", help="As for nightlab up; the default policy without.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run whole research sessions on pretended training in virtual time, and hold them against the truth.

    The session loop, its judgement and the scheduler are the real ones; hours pass in seconds. Nothing is started,
    and the same options give the same result.
    """
    from agent.task_file import TaskError, load_task
    from nightlab.lab.background import Background
    from nightlab.lab.outcome import found_by, lab_data
    from nightlab.lab.sessions import Setting
    from nightlab.lab.world import BadWorld, LabError
    from nightlab.lab.worlds import open_world
    from runtime.scheduling.policy import Policy
    from runtime.simulator.cluster import parse_nodes
    from runtime.simulator.errors import SimulationError

    try:
        task = load_task(task_file)
        if trials is not None:
            task = task.model_copy(update={"budgets": task.budgets.model_copy(update={"trials": trials})})
        setting = Setting(
            task=task,
            world=open_world(world, task),
            nodes=parse_nodes(f"1x{devices}" if devices.isdigit() else devices),
            policy=Policy() if policy is None else policy_at(policy),
        )
        n_devices = sum(len(node.devices) for node in setting.nodes)
        if urgent_every is not None:
            every_s = seconds_of("urgent-every", urgent_every, is_positive=True) or 0.0
            run_s = seconds_of("urgent-run", urgent_run, is_positive=True) or 0.0
            setting = replace(setting, background=Background(every_s=every_s, run_s=run_s, n_devices=urgent_devices))
        began = time.monotonic()
        lived = _lived(setting, sessions, is_together=together)
    except TaskError as error:
        path = error.problems[0].path if error.problems else None
        raise wrong_use(str(error), code="bad_task", path=path) from error
    except SimulationError as error:
        raise wrong_use(error.message, code="bad_devices", path="devices") from error
    except BadWorld as error:
        raise wrong_use(error.message, code="bad_world", path="world") from error
    except LabError as error:
        raise work_failed(error.message, code="lab_failed") from error
    found = [found_by(one, task, setting.world, n_devices=n_devices) for one in lived]
    if as_json:
        print_json(lab_data(found, world=setting.world.name, n_devices=n_devices, is_together=together))
    else:
        took_s = time.monotonic() - began
        print_lab(found, world=setting.world.name, n_devices=n_devices, took_s=took_s)


def _lived(setting: Setting, n_sessions: int, *, is_together: bool) -> list[Lived]:
    from nightlab.lab.sessions import live_alone, live_together

    with tempfile.TemporaryDirectory(prefix="nightlab-lab-") as folder:
        if is_together:
            return live_together(setting, range(n_sessions), Path(folder))
        return [live_alone(setting, draw, Path(folder) / str(draw)) for draw in range(n_sessions)]
