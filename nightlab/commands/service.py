"""`nightlab service ...`: the runtime started by the machine itself, as a unit of systemd or a line of the crontab."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nightlab.output import note, print_json

from .options import HomeOption, JsonOption, home_folder

if TYPE_CHECKING:
    from nightlab.schedule.crontab_text import LineState

app = typer.Typer(
    rich_markup_mode=None,
    add_completion=False,
    help="The runtime, started with the machine.",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example:  nightlab service install",
)

SYSTEMD, CRON = "systemd", "cron"


@app.command("install", epilog="Example:  nightlab service install --systemd")
def install(
    systemd: Annotated[
        bool | None,
        typer.Option("--systemd/--cron", help="Which one.", show_default="systemd where this user has an instance"),
    ] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Have the machine start the runtime, with the settings that it ran with last.

    A unit of your systemd instance, which starts it again when it dies; or one marked @reboot line in your crontab.
    """
    from nightlab.schedule.units import has_instance

    folder = home_folder(home)
    kind = SYSTEMD if (has_instance() if systemd is None else systemd) else CRON
    shown = _put_unit(folder) if kind == SYSTEMD else _put_line(folder)
    other = _take_line(folder) if kind == SYSTEMD else _remove_unit(folder)
    if as_json:
        print_json({"kind": kind, "line": shown, "home": str(folder)})
        return
    print(f"the runtime of {folder} is started by {kind}: {shown}")
    if other:
        note(f"instead of {CRON if kind == SYSTEMD else SYSTEMD}")
    if kind == SYSTEMD:
        note("units of a user run while he is logged in; from the start of the machine on: loginctl enable-linger")
    else:
        note("it starts with the machine; now: nightlab up")


@app.command("uninstall", epilog="Example:  nightlab service uninstall")
def uninstall(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Take exactly that away again; a unit is stopped in order, so that its jobs are resumed at the next start."""
    folder = home_folder(home)
    removed = [kind for kind, is_gone in ((SYSTEMD, _remove_unit(folder)), (CRON, _take_line(folder))) if is_gone]
    if as_json:
        print_json({"removed": removed, "home": str(folder)})
    elif removed:
        print(f"the runtime of {folder} is not started by {' and '.join(removed)} any more")
    else:
        print(f"the runtime of {folder} was not installed")


@app.command("status", epilog="Example:  nightlab service status --json")
def status(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Say whether the machine starts the runtime, and whether it is up."""
    from nightlab.schedule.crontab_text import LineState
    from nightlab.schedule.units import units_folder
    from nightlab.services.control import is_up

    folder = home_folder(home)
    has_unit = (units_folder() / f"{_unit(folder)}.service").exists()
    line = _line_state(folder)
    kind = SYSTEMD if has_unit else CRON if line is LineState.IN_FORCE else None
    if as_json:
        print_json({"kind": kind, "line": line, "is_up": is_up(folder), "home": str(folder)})
        return
    print(f"started by {kind}" if kind else "not installed; install it with: nightlab service install")
    if line is LineState.COMMENTED_OUT:
        note("its line in the crontab is commented out; nightlab service install puts it in force again")
    print(f"nightlab is {'up' if is_up(folder) else 'down'} for {folder}")


def _argv(home: Path, *options: str) -> list[str]:
    return [sys.executable, "-P", "-m", "nightlab", "up", "--as-before", *options, "--home", str(home)]


def _unit(home: Path) -> str:
    from nightlab.schedule.units import unit_name

    return unit_name("runtime", home)


def _put_unit(home: Path) -> str:
    from nightlab.schedule.units import put_units, service_unit

    name = _unit(home)
    path = os.environ.get("PATH", os.defpath)
    units = service_unit(name, _argv(home, "--foreground"), home, path=path)
    put_units(units, enable=f"{name}.service")
    return f"{name}.service"


def _remove_unit(home: Path) -> bool:
    from nightlab.schedule.units import remove_units

    name = f"{_unit(home)}.service"
    return remove_units([name], disable=name)


def _mark(home: Path) -> str:
    from nightlab.schedule.crontab_text import mark_of

    return mark_of("service", home)


def _put_line(home: Path) -> str:
    from nightlab.schedule.crontab import put_line
    from nightlab.schedule.crontab_text import LineState, line_of

    path = os.environ.get("PATH", os.defpath)
    line = line_of("@reboot", ["/usr/bin/env", f"PATH={path}", *_argv(home)], _mark(home))
    if put_line(line, _mark(home)) is LineState.COMMENTED_OUT:
        note("its line was commented out; it is in force again")
    return line


def _take_line(home: Path) -> bool:
    from nightlab.schedule.crontab import remove_line
    from nightlab.schedule.crontab_text import LineState

    is_there = _line_state(home) is not LineState.ABSENT
    return is_there and remove_line(_mark(home)) is not LineState.ABSENT


def _line_state(home: Path) -> LineState:
    """Where there is no crontab program there is no line."""
    from nightlab.schedule.crontab import marked_line_state
    from nightlab.schedule.crontab_text import LineState

    return marked_line_state(_mark(home)) if shutil.which("crontab") is not None else LineState.ABSENT
