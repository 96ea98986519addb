"""`nightlab up`: start the runtime, MLflow and the agent on this machine."""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from nightlab.failure import ExitCode, work_failed, wrong_use
from nightlab.output import note, print_json
from nightlab.services.control import Services, differences, is_up, present_settings, start
from nightlab.services.health import answers
from nightlab.services.settings import DEFAULT_MLFLOW_PORT, DEFAULT_PORT, ServiceFiles, ServiceSettings
from nightlab.services.state import Phase

from .options import HomeOption, JsonOption, check_devices, home_folder, policy_at

WAIT_FOR_OTHER_S = 90.0
DEFAULT_POLICY = "default"
"""Instead of a file: the policy that is in force where none was given."""

EPILOG = """\b
Examples:
  nightlab up                        every GPU, or CPU slots where there is none
  nightlab up --devices cpu:4        four CPU slots
  nightlab up --devices fake:8xH100  pretended GPUs, to try the scheduler
  nightlab up --policy lab.yaml      classes, quotas, shares: see docs/scheduling.md
  nightlab up --mlflow http://mlflow.example:5000"""

app = typer.Typer(rich_markup_mode=None, add_completion=False, context_settings={"help_option_names": ["-h", "--help"]})


@app.command(epilog=EPILOG)
def up(
    devices: Annotated[
        str | None, typer.Option(help="auto, cpu:N, or fake:NxMODEL.", show_default="auto", metavar="DEVICES")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Port of the runtime; 0 takes a free one.", show_default=str(DEFAULT_PORT)),
    ] = None,
    mlflow: Annotated[
        str | None, typer.Option(help="Use this MLflow server instead of starting one.", metavar="URL")
    ] = None,
    no_mlflow: Annotated[bool, typer.Option("--no-mlflow", help="Keep records here, mirror to no MLflow.")] = False,
    mlflow_port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, help="Port of our MLflow; 0 takes a free one.", show_default=str(DEFAULT_MLFLOW_PORT)
        ),
    ] = None,
    database: Annotated[
        str | None, typer.Option(help="Database of the runtime; SQLite in the home folder if not given.", metavar="URL")
    ] = None,
    price: Annotated[
        list[str] | None,
        typer.Option(help="Price of a device-hour, for nightlab spend; may be given again.", metavar="KIND=PRICE"),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(help="Scheduling policy, in force until another is given; `default`.", metavar="FILE"),
    ] = None,
    foreground: Annotated[bool, typer.Option("--foreground", help="Stay; Ctrl-C stops in order.")] = False,
    as_before: Annotated[bool, typer.Option("--as-before", help="With the settings of the last time.")] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Start the runtime, MLflow and the agent on this machine.

    Returns when the runtime answers; MLflow needs half a minute more and is waited for by nobody. What dies is
    started again. Services listen on loopback only.
    """
    wanted = _settings(home_folder(home), devices, port, mlflow, no_mlflow, mlflow_port, database, prices(price or ()))
    if as_before:
        if any((devices, port is not None, mlflow, no_mlflow, mlflow_port is not None, database, price)):
            raise wrong_use("--as-before takes all settings from the last time; give no others.", code="contradiction")
        wanted = present_settings(wanted.home) or wanted
    policy_text = None if policy is None else _policy_text(policy)
    if is_up(wanted.home):
        named = {
            "devices": devices,
            "port": port or None,
            "mlflow_url": mlflow or no_mlflow or None,
            "mlflow_port": mlflow_port or no_mlflow or None,
            "database_url": database,
            "device_prices": price,
        }
        present = _same_as_present(wanted, [name for name, given in named.items() if given is not None])
        services, is_new = Services(present), False
        _await_other_start(services)
        if policy is not None:
            _check_same_policy(services, policy)
    else:
        services, is_new = start(wanted, is_tied=foreground, policy=policy_text), True
    _report(services, is_new, as_json)
    if foreground and is_new:
        _stay(services)


def _settings(
    home: Path,
    devices: str | None,
    port: int | None,
    mlflow: str | None,
    no_mlflow: bool,
    mlflow_port: int | None,
    database: str | None,
    device_prices: dict[str, float],
) -> ServiceSettings:
    if devices is not None:
        check_devices(devices)
    if mlflow is not None and no_mlflow:
        raise wrong_use("--mlflow and --no-mlflow contradict each other; give one of them.", code="contradiction")
    if mlflow is not None and (urlsplit(mlflow).scheme not in ("http", "https") or not urlsplit(mlflow).hostname):
        raise wrong_use(
            f"--mlflow {mlflow!r} is no address of a server; give one like http://host:5000.",
            code="bad_mlflow_url",
            path="mlflow",
        )
    starts_mlflow = mlflow is None and not no_mlflow
    return ServiceSettings(
        home=home,
        devices=devices or "auto",
        port=DEFAULT_PORT if port is None else port,
        mlflow_url=mlflow.rstrip("/") if mlflow else None,
        mlflow_port=(DEFAULT_MLFLOW_PORT if mlflow_port is None else mlflow_port) if starts_mlflow else None,
        database_url=database,
        device_prices=device_prices,
    )


def _policy_text(named: str) -> str:
    """What the named file says, checked; empty for the default policy.

    Raises:
        Failure: it can not be used.
    """
    if named == DEFAULT_POLICY:
        return ""
    policy_at(Path(named))
    return Path(named).read_text(encoding="utf-8") or "{}"


def _check_same_policy(services: Services, named: str) -> None:
    """
    Raises:
        Failure: another policy is in force.
    """
    from runtime.scheduling.policy import Policy
    from runtime.server.policy_file import spec_of

    wanted = spec_of(Policy() if named == DEFAULT_POLICY else policy_at(Path(named)))
    if services.client.policy() != wanted:
        raise wrong_use(
            f"nightlab is already up at {services.url} with another scheduling policy (`nightlab policy` shows it). "
            "Run `nightlab down` first; jobs are resumed.",
            code="up_with_other_settings",
            path="policy",
        )


def prices(pairs: Sequence[str]) -> dict[str, float]:
    """`H100=2.5` and so on.

    Raises:
        Failure: one is not of that form, or no price.
    """
    found: dict[str, float] = {}
    for pair in pairs:
        kind, _, text = pair.partition("=")
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if not kind or not 0 <= value < float("inf"):
            raise wrong_use(f"--price {pair!r} is no price; write H100=2.5.", code="bad_price", path="price")
        found[kind] = value
    return found


def _same_as_present(wanted: ServiceSettings, named: Sequence[str]) -> ServiceSettings:
    """The settings that are up. What was not named, or as port 0, is as wanted.

    Raises:
        Failure: they are not what was asked for.
    """
    present = present_settings(wanted.home)
    if present is None:
        return wanted
    differing = differences(wanted, present, named)
    if differing:
        raise wrong_use(
            f"nightlab is already up at {present.url} with other settings: {'; '.join(differing)}. "
            "Run `nightlab down` first; jobs are resumed.",
            code="up_with_other_settings",
        )
    return present


def _await_other_start(services: Services) -> None:
    """Another `up` may be at work; its runtime is ours too."""
    deadline = time.monotonic() + WAIT_FOR_OTHER_S
    while not answers(f"{services.url}/v1/health") and is_up(services.settings.home) and time.monotonic() < deadline:
        time.sleep(0.1)


def _report(services: Services, is_new: bool, as_json: bool) -> None:
    settings = services.settings
    if as_json:
        print_json(
            {"url": services.url, "mlflow_url": services.mlflow_url, "home": str(settings.home), "is_new": is_new}
        )
        return
    print(f"nightlab is {'up' if is_new else 'already up'} at {services.url} (devices {settings.devices})")
    if settings.mlflow_url is not None:
        print(f"MLflow: {settings.mlflow_url}")
    elif settings.mlflow_port is not None:
        behind = " comes up in the background, in half a minute" if is_new else ""
        print(f"MLflow: {services.mlflow_url}{behind}")
    else:
        print("MLflow: none; records stay here")
    print(f"Logs:   {ServiceFiles(settings.home).logs}")
    print("Page:   nightlab web prints its link")
    print("Next:   nightlab status | nightlab job run -- python train.py | nightlab down")


def _stay(services: Services) -> None:
    """Until Ctrl-C or SIGTERM: then stop in order; at a second one, at once, training included."""
    try:
        try:
            _wait_for_the_word(services.settings.home)
        except KeyboardInterrupt:
            note("Stopping in order; running jobs checkpoint first. Ctrl-C again stops at once.")
            services.stop()
        else:
            _tell_if_died(services)
    except KeyboardInterrupt:
        from nightlab.services.remains import end_everything

        end_everything(services, grace_s=0.0)
        raise typer.Exit(ExitCode.INTERRUPTED) from None


def _wait_for_the_word(home: Path) -> None:
    """Until the services are down. Raises KeyboardInterrupt at Ctrl-C or SIGTERM, from before it says so on."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    note("Ctrl-C stops in order.")
    while is_up(home):
        time.sleep(0.5)


def _tell_if_died(services: Services) -> None:
    """
    Raises:
        Failure: the services were not stopped in order; who watches over this process then starts it again.
    """
    state = services.state()
    if state is None or state.phase is not Phase.STOPPED:
        raise work_failed("the supervisor of the services has died; start them again with: nightlab up", code="died")


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt
