"""`nightlab job run`: from a command line, a workload file, or both, to a job; and on request to its end."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nightlab.failure import ExitCode, wrong_use
from nightlab.output import note, print_json

from .options import HomeOption, JsonOption, runtime

if TYPE_CHECKING:
    from runtime_client.client import RuntimeClient
    from runtime_client.models import Forecast, JobSpec, JobView

SECONDS_BY_UNIT = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


class PriorityClass(StrEnum):
    CRITICAL = "critical"
    NORMAL = "normal"
    EXPLORATORY = "exploratory"


class ArgsStyleOption(StrEnum):
    """As `runtime_client.models.ArgsStyle`, which costs an import of pydantic; a test compares them."""

    NONE = "none"
    ARGPARSE = "argparse"
    HYDRA = "hydra"
    ENV = "env"
    YAML = "yaml"


class OnTimeoutOption(StrEnum):
    """As `runtime_client.models.OnTimeout`."""

    END = "end"
    RESUME = "resume"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the flags say; None and empty: nothing."""

    command: tuple[str, ...]
    n_devices: int | None
    accelerator_type: str | None
    accelerator_memory_gb: float | None = None
    accelerator_share: float | None = None
    cpus: float | None = None
    memory_gb: float | None = None
    exclusive: bool | None = None
    run_name: str | None
    experiment: str | None
    priority: str | None
    params: tuple[str, ...]
    seed: int | None
    args_style: str | None
    env: tuple[str, ...]
    python: str | None
    cwd: Path | None
    snapshot: bool | None
    timeout: str | None
    on_timeout: str | None = None
    max_total: str | None = None
    finish_by: str | None = None
    continues: str | None = None
    after: tuple[str, ...] = ()
    array: str | None = None
    parallel: int | None = None
    sandbox: str | None = None
    file: Path | None
    overrides: tuple[str, ...]
    idempotency_key: str | None


def run(
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="COMMAND", help="The command and its arguments.", show_default=False),
    ] = None,
    gpus: Annotated[
        int | None, typer.Option("--gpus", "--devices", min=1, help="Devices in all.", show_default="1")
    ] = None,
    accelerator_type: Annotated[
        str | None,
        typer.Option(
            "--type", help="Device model, such as H100, or any of H100|A100.", show_default="any", metavar="MODEL"
        ),
    ] = None,
    gpu_memory: Annotated[
        float | None, typer.Option(help="The least memory of each device, in GB.", metavar="GB")
    ] = None,
    share: Annotated[
        float | None, typer.Option(help="The part of one device that it takes, such as 0.5.", show_default="1")
    ] = None,
    cpus: Annotated[float | None, typer.Option(help="Cores set aside for each device.", show_default="none")] = None,
    memory: Annotated[
        float | None, typer.Option(help="Memory set aside for each device, in GB.", show_default="none", metavar="GB")
    ] = None,
    exclusive: Annotated[
        bool, typer.Option("--exclusive", help="Nothing else on its devices and their cores.")
    ] = False,
    name: Annotated[str | None, typer.Option(help="Name of the MLflow run.")] = None,
    experiment: Annotated[str | None, typer.Option(help="Experiment.", show_default="the folder's name")] = None,
    priority: Annotated[PriorityClass | None, typer.Option(help="Priority class.", show_default="normal")] = None,
    param: Annotated[list[str] | None, typer.Option(help="A parameter; may be given again.", metavar="K=V")] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, max=2**32 - 1, help="Fills {seed}, and goes with the parameters.")
    ] = None,
    args_style: Annotated[
        ArgsStyleOption | None, typer.Option(help="How parameters reach the script.", show_default="none")
    ] = None,
    env: Annotated[
        list[str] | None, typer.Option(help="An environment variable; may be given again.", metavar="K=V")
    ] = None,
    python: Annotated[
        str | None,
        typer.Option(help="Interpreter, or folder of an environment.", show_default="of this shell", metavar="PATH"),
    ] = None,
    cwd: Annotated[Path | None, typer.Option(help="Working directory.", show_default="the present one")] = None,
    snapshot: Annotated[
        bool | None,
        typer.Option(
            "--snapshot/--no-snapshot",
            help="Run the code as it is now, in a copy, also if it changes while the job waits.",
            show_default="run in the folder itself",
        ),
    ] = None,
    timeout: Annotated[
        str | None, typer.Option(help="Run time of one attempt: 90s, 30m, 2h; a bare number is minutes.")
    ] = None,
    on_timeout: Annotated[
        OnTimeoutOption | None,
        typer.Option(help="After --timeout: fail, or go on as a new attempt.", show_default="end"),
    ] = None,
    max_total: Annotated[str | None, typer.Option(help="Run time of all attempts together.", metavar="TIME")] = None,
    finish_by: Annotated[
        str | None,
        typer.Option(
            help="When it has to be over: 07:00, +2h, '2026-12-24 07:00'; it checkpoints and leaves in time.",
            metavar="TIME",
        ),
    ] = None,
    continues: Annotated[
        str | None,
        typer.Option(help="Go on from the newest checkpoint of this ended job of the same experiment.", metavar="JOB"),
    ] = None,
    after: Annotated[
        list[str] | None,
        typer.Option(
            help="Wait until this job or array has ended well, or =any way, or =not_ok; may be given again.",
            metavar="JOB[=HOW]",
        ),
    ] = None,
    array: Annotated[
        str | None, typer.Option(help="An array: a task for each index, which fills {index}.", metavar="0-99")
    ] = None,
    parallel: Annotated[
        int | None, typer.Option(min=1, help="Tasks of the array that run at once.", show_default="any number")
    ] = None,
    sandbox: Annotated[
        str | None,
        typer.Option(
            help="none, user, or sealed: for code that nobody has read.", show_default="user", metavar="LEVEL"
        ),
    ] = None,
    file: Annotated[Path | None, typer.Option("-f", "--file", help="Workload file; flags win over it.")] = None,
    override: Annotated[
        list[str] | None, typer.Option(help="Set a field of the spec; may be given again.", metavar="FIELD=VALUE")
    ] = None,
    idempotency_key: Annotated[
        str | None, typer.Option(help="The same key returns the same job instead of a second one.", metavar="KEY")
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch/--no-watch", help="Follow it to its end; exit 1 if it failed.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check and print the spec; submit nothing.")] = False,
    what_if: Annotated[
        bool, typer.Option("--what-if", help="Tell what would happen now, and to whom; submit nothing.")
    ] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Submit a job: the command after --, or a workload file.

    It runs in this shell's Python (the active venv or conda environment) and in this folder. Nothing of nightlab
    need be installed there. Parameters fill {name} in the command, and reach the script as --args-style says. A
    command of one word with spaces in it is given to the shell.
    """
    asked = Asked(
        command=tuple(command or ()),
        n_devices=gpus,
        accelerator_type=accelerator_type,
        accelerator_memory_gb=gpu_memory,
        accelerator_share=share,
        cpus=cpus,
        memory_gb=memory,
        exclusive=exclusive or None,
        run_name=name,
        experiment=experiment,
        priority=priority,
        params=tuple(param or ()),
        seed=seed,
        args_style=args_style,
        env=tuple(env or ()),
        python=python,
        cwd=cwd,
        snapshot=snapshot,
        timeout=timeout,
        on_timeout=on_timeout,
        max_total=max_total,
        finish_by=finish_by,
        continues=continues,
        after=tuple(after or ()),
        array=array,
        parallel=parallel,
        sandbox=sandbox,
        file=file,
        overrides=tuple(override or ()),
        idempotency_key=idempotency_key,
    )
    spec = spec_of(asked)
    if dry_run:
        _show_spec(spec, as_json)
        return
    with runtime(home) as client:
        if what_if:
            _show_forecast(client.what_if(spec), as_json)
            return
        if spec.array is not None:
            _run_array(client, spec, is_watched=watch, as_json=as_json)
            return
        job = client.submit(spec)
        if watch:
            _watch(client, job, as_json)
            return
    if as_json:
        print_json(job)
    else:
        print(f"{job.job_id} {job.state}")
        note(f"follow it:  nightlab job logs -f {job.job_id}")


def spec_of(asked: Asked) -> JobSpec:
    """The checked spec.

    Raises:
        Failure: a flag or the file is wrong; says which and what is allowed.
    """
    from nightlab.foreign_workload import made_ours
    from nightlab.workload import checked_spec, laid_over, read_workload, resolve_folder, scalar, set_field, split_pair

    fields: dict[str, Any] = {}
    if asked.file is not None:
        fields, warnings = made_ours(read_workload(asked.file))
        resolve_folder(fields, asked.file.parent.resolve())
        for warning in warnings:
            note(f"{asked.file}: {warning}")
    fields = laid_over(fields, _from_flags(asked))
    for pair in asked.params:
        name, text = split_pair(pair, "--param")
        set_field(fields, f"parameters.{name}", scalar(text), option="--param")
    for pair in asked.overrides:
        name, text = split_pair(pair, "--override")
        set_field(fields, name, scalar(text), option="--override")
    _fill_in(fields, asked)
    return checked_spec(fields, source=str(asked.file) if asked.file else "job run")


def _from_flags(asked: Asked) -> dict[str, Any]:
    from nightlab.moments import coming
    from nightlab.shell import named_python
    from nightlab.workload import split_pair

    command: object = asked.command or None
    is_text = bool(asked.command) and " " in asked.command[0].strip()
    if is_text and asked.command[1:2] and asked.command[1].startswith("-"):
        raise wrong_use(
            f"{asked.command[1]} stands after the command {asked.command[0]!r}; options of nightlab come before it.",
            code="option_after_command",
            path="command",
        )
    if is_text and len(asked.command) == 1:
        command = asked.command[0]
    flat = {
        "command": command,
        "mlflow_run_name": asked.run_name,
        "experiment_name": asked.experiment,
        "priority_class": asked.priority,
        "seed": asked.seed,
        "sandbox": asked.sandbox,
        "args_style": asked.args_style,
        "timeout_minutes": None if asked.timeout is None else minutes(asked.timeout),
        "on_timeout": asked.on_timeout,
        "max_total_minutes": None if asked.max_total is None else minutes(asked.max_total, option="--max-total"),
        "finish_by": None if asked.finish_by is None else coming(asked.finish_by, now=time(), option="--finish-by"),
        "continues": asked.continues,
        "depends_on": [_awaited(text) for text in asked.after] or None,
        "idempotency_token": asked.idempotency_key,
        "env_variables": dict(split_pair(pair, "--env") for pair in asked.env) or None,
    }
    nested: dict[str, dict[str, Any]] = {
        "compute": {
            "num_accelerators": asked.n_devices,
            "accelerator_type": asked.accelerator_type,
            "accelerator_memory_gb": asked.accelerator_memory_gb,
            "accelerator_share": asked.accelerator_share,
            "cpus": asked.cpus,
            "memory_gb": asked.memory_gb,
            "exclusive": asked.exclusive,
        },
        "array": {"indexes": asked.array, "parallel": asked.parallel},
        "environment": {"python": None if asked.python is None else named_python(asked.python)},
        "code_source": {
            "root_path": None if asked.cwd is None else _folder(asked.cwd),
            "snapshot": {None: None, True: "auto", False: "off"}[asked.snapshot],
        },
    }
    fields: dict[str, Any] = {name: value for name, value in flat.items() if value is not None}
    for name, inner in nested.items():
        given = {key: value for key, value in inner.items() if value is not None}
        if given:
            fields[name] = given
    return fields


def _fill_in(fields: dict[str, Any], asked: Asked) -> None:
    """What neither file nor flags say: the folder, the experiment, the shell's Python."""
    from nightlab.shell import experiment_for, present_python

    if "command" not in fields and asked.file is None:
        raise wrong_use("no command: give one after --, or a workload file with -f.", code="no_command", path="command")
    here = Path.cwd() if asked.file is None else asked.file.parent.resolve()
    if fields.get("code_source") is None:
        fields["code_source"] = {}
    if isinstance(fields["code_source"], dict):
        fields["code_source"].setdefault("root_path", str(here))
    folder = (
        Path(str(fields["code_source"].get("root_path", here))) if isinstance(fields["code_source"], dict) else here
    )
    fields.setdefault("experiment_name", experiment_for(folder))
    environment = fields.get("environment") or {}
    if isinstance(environment, dict) and environment.get("python") is None:
        fields["environment"] = {**environment, "python": present_python()}


def _awaited(text: str) -> dict[str, str]:
    """`j3`, `a10=any`."""
    job, _, condition = text.partition("=")
    return {"job": job.strip(), "condition": condition.strip() or "ok"}


def _folder(given: Path) -> str:
    folder = given.expanduser().resolve()
    if not folder.is_dir():
        raise wrong_use(f"--cwd {given}: {folder} is not a folder.", code="no_folder", path="code_source.root_path")
    return str(folder)


def minutes(text: str, *, option: str = "--timeout") -> float:
    """`90s`, `30m`, `2h`, `1d`, or minutes.

    Raises:
        Failure: it is none of these.
    """
    number, unit = (text[:-1], text[-1]) if text[-1:] in SECONDS_BY_UNIT else (text, "m")
    try:
        value = float(number) * SECONDS_BY_UNIT[unit] / 60
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise wrong_use(
            f"{option} {text!r} is no length of time; write 90s, 30m, 2h or 1d.",
            code="bad_timeout",
            path=option.lstrip("-").replace("-", "_"),
        )
    return value


def _run_array(client: RuntimeClient, spec: JobSpec, *, is_watched: bool, as_json: bool) -> None:
    from nightlab.arrays import array_line, follow_array

    array = client.submit_array(spec)
    if is_watched:
        try:
            array = follow_array(client, array, shows_state=not as_json)
        except KeyboardInterrupt:
            note(f"\ndetached; {array.array_id} goes on. Look at it: nightlab job get {array.array_id}")
            raise typer.Exit(ExitCode.INTERRUPTED) from None
    if as_json:
        print_json(array)
    elif not is_watched:
        print(array_line(array))
        note(f"its tasks:  nightlab job list --all --array {array.array_id}")
    if is_watched and array.counts.get("succeeded", 0) < array.n_tasks:
        raise typer.Exit(ExitCode.WORK_FAILED)


def _show_spec(spec: JobSpec, as_json: bool) -> None:
    if as_json:
        print_json(spec)
        return
    import yaml

    print(yaml.safe_dump(spec.model_dump(mode="json", exclude_defaults=True), sort_keys=False), end="")
    note("nothing was submitted")


def _show_forecast(forecast: Forecast, as_json: bool) -> None:
    if as_json:
        print_json(forecast)
        return
    from nightlab.explanation_page import print_forecast

    print_forecast(forecast)
    note("nothing was submitted")


def _watch(client: RuntimeClient, job: JobView, as_json: bool) -> None:
    from nightlab.following import JobFollower

    try:
        ended = JobFollower(client, job.job_id, shows_output=not as_json, shows_state=True).until_end()
    except KeyboardInterrupt:
        note(
            f"\ndetached; {job.job_id} goes on. Follow it: nightlab job logs -f {job.job_id}; "
            f"end it: nightlab job cancel {job.job_id}"
        )
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    if as_json:
        print_json(ended)
    if ended.state != "succeeded":
        raise typer.Exit(ExitCode.WORK_FAILED)
