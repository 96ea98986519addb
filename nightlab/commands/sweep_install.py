"""`nightlab sweep install` and `uninstall`: one line in the crontab, or one timer of systemd, for a sweep file."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nightlab.failure import wrong_use
from nightlab.output import note, print_json

from .options import HomeOption, JsonOption, home_folder
from .sweep_argument import examined, read_sweep

if TYPE_CHECKING:
    from agent.sweeps.sweep import Sweep
    from nightlab.schedule.crontab_text import LineState
    from nightlab.schedule.installed import Installed

INSTALL_EPILOG = 'Example:  nightlab sweep install digits.yaml --at "30 22 * * 1-5"'
UNINSTALL_EPILOG = "Example:  nightlab sweep uninstall digits-nightly"
N_SHOWN = 3


def install(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Sweep file.", show_default=False)],
    at: Annotated[
        str, typer.Option("--at", metavar="CRON", help="Five cron fields, in this machine's time.", show_default=False)
    ],
    systemd: Annotated[bool, typer.Option("--systemd", help="A systemd user timer instead of a crontab line.")] = False,
    python: Annotated[
        str | None, typer.Option(metavar="PATH", help="Python of the jobs.", show_default="this shell's")
    ] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Have the machine start a sweep, night after night, with nobody watching.

    Writes exactly one marked line into your crontab, and keeps everything else in it. Installing again replaces it.
    """
    from nightlab.schedule.installed import Installed, forget_installed, read_installed, save_installed
    from nightlab.shell import named_python, present_python

    folder, path = home_folder(home), file.expanduser().resolve()
    sweep, expression = read_sweep(path), _expression(at)
    before = read_installed(folder, sweep.sweep)
    if before is not None and before.file != str(path):
        raise wrong_use(
            f"a sweep named {sweep.sweep!r} is installed already, from {before.file}. Give one of them another name, "
            f"or first: nightlab sweep uninstall {sweep.sweep}",
            code="same_name",
            path="sweep",
        )
    installed = Installed(
        sweep=sweep.sweep,
        file=str(path),
        expression=expression,
        kind="systemd" if systemd else "cron",
        executable=sys.executable,
        python=named_python(python) if python is not None else present_python(),
        path=os.environ.get("PATH", os.defpath),
        at=time.time(),
    )
    save_installed(folder, installed)
    try:
        put = _put(folder, installed)
        if before is not None and before.kind != installed.kind:
            _remove(folder, before)
    except BaseException:
        if before is None:
            forget_installed(folder, sweep.sweep)
        else:
            save_installed(folder, before)
        raise
    _tell(sweep, installed, put, as_json)


def uninstall(
    name: Annotated[str, typer.Argument(metavar="FILE|NAME", help="Sweep, or its file.", show_default=False)],
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take exactly that line or timer away again. A night that runs goes on."""
    from nightlab.schedule.crontab_text import LineState
    from nightlab.schedule.installed import all_installed, forget_installed

    folder = home_folder(home)
    known = all_installed(folder)
    path = str(Path(name).expanduser().resolve())
    found = next((one for one in known if one.sweep == name), None) or next((o for o in known if o.file == path), None)
    if found is None:
        names = ", ".join(one.sweep for one in known) or "none"
        raise wrong_use(f"no sweep {name!r} is installed here; installed: {names}.", code="not_installed", path="name")
    before = _remove(folder, found)
    forget_installed(folder, found.sweep)
    if as_json:
        was_there = before is not LineState.ABSENT
        print_json({"sweep": found.sweep, "kind": found.kind, "was_there": was_there, "line_was": before})
        return
    print(f"{found.sweep} is not started by {found.kind} any more")
    if before is LineState.ABSENT:
        note("its line had been taken away before")
    elif before is LineState.COMMENTED_OUT:
        note("its line was commented out; that one is taken away too")


def _expression(at: str) -> str:
    from agent.sweeps.calendar import BadTime
    from agent.sweeps.starts import five_fields

    try:
        return five_fields(at)
    except BadTime as error:
        raise wrong_use(f"--at: {error}", code="bad_cron_line", path="at") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class _Put:
    """What was written."""

    shown: str
    """The line, or the timer's name."""
    before: LineState
    zones: Mapping[str, str] = field(default_factory=dict)
    """Time zones that the crontab sets before the line."""


def _put(home: Path, installed: Installed) -> _Put:
    from nightlab.schedule.crontab import put_line, zones_for
    from nightlab.schedule.crontab_text import LineState, line_of, mark_of
    from nightlab.schedule.units import put_units, sweep_units, unit_name

    argv = [installed.executable, "-P", "-m", "nightlab.schedule.start", str(home), installed.sweep]
    if installed.kind == "cron":
        mark = mark_of(f"sweep {installed.sweep}", home)
        line = line_of(installed.expression, argv, mark)
        before = put_line(line, mark)
        return _Put(shown=line, before=before, zones=zones_for(mark))
    name = unit_name(f"sweep-{installed.sweep}", home)
    put_units(sweep_units(name, installed.sweep, installed.expression, argv), enable=f"{name}.timer")
    return _Put(shown=f"{name}.timer", before=LineState.ABSENT)


def _remove(home: Path, installed: Installed) -> LineState:
    from nightlab.schedule.crontab import remove_line
    from nightlab.schedule.crontab_text import LineState, mark_of
    from nightlab.schedule.units import remove_units, unit_name

    if installed.kind == "cron":
        return remove_line(mark_of(f"sweep {installed.sweep}", home))
    name = unit_name(f"sweep-{installed.sweep}", home)
    was_there = remove_units([f"{name}.timer", f"{name}.service"], disable=f"{name}.timer")
    return LineState.IN_FORCE if was_there else LineState.ABSENT


def _tell(sweep: Sweep, installed: Installed, put: _Put, as_json: bool) -> None:
    from agent.sweeps.calendar import told, zone
    from agent.sweeps.starts import next_starts
    from nightlab.schedule.crontab_text import LineState

    here = zone(None)
    coming = next_starts(installed.expression, here, installed.at, N_SHOWN)
    warnings = [*_zone_warnings(sweep, put.zones, installed.at), *_night_warnings(installed)]
    if as_json:
        said = {"line": put.shown, "line_was": put.before, "next": coming, "warnings": warnings}
        print_json({**asdict(installed), **said})
        return
    print(f"{installed.sweep} is started by {installed.kind}: {put.shown}")
    print(f"next: {', '.join(told(one, here) for one in coming)} (this machine's time)")
    if sweep.time_zone is not None:
        there = zone(sweep.time_zone)
        print(f"      {', '.join(told(one, there) for one in coming)} ({sweep.time_zone})")
    if put.before is LineState.COMMENTED_OUT:
        note("its line was commented out; it is in force again")
    for warning in warnings:
        note(f"! {warning}")
    if installed.kind == "systemd":
        note("timers of a user run while he is logged in; at any time after: loginctl enable-linger")


def _night_warnings(installed: Installed) -> list[str]:
    """Why a night that started now would not run: said, since what is missing may come before the first start."""
    found = examined(Path(installed.file), installed.python)
    return [f"no night would run now: {one.path}: {one.message}" for one in found.problems] + [
        f"{one.path}: {one.message}" for one in found.addresses
    ]


def _zone_warnings(sweep: Sweep, zones: Mapping[str, str], now: float) -> list[str]:
    """What a time zone that the crontab sets before the line does to the sweep, where it is another than its own."""
    from agent.sweeps.calendar import BadTime, is_same_clock, zone

    wanted = {
        "this machine's": zone(None),
        **({sweep.time_zone: zone(sweep.time_zone)} if sweep.time_zone is not None else {}),
    }
    effects = {
        "CRON_TZ": "crons that know it (cronie) read the five fields in that zone, Debian's in this machine's",
        "TZ": "the starts stay where they are, but logs and messages of the night tell times in that zone",
    }
    said = []
    for name, value in zones.items():
        try:
            set_to = zone(value.removeprefix(":"))
            others = [where for where, one in wanted.items() if not is_same_clock(set_to, one, now)]
        except BadTime:
            others = list(wanted)
        if others:
            said.append(
                f"the crontab sets {name}={value} before this line, another zone than {' and '.join(others)}: "
                f"{effects[name]}. Move the line above it: crontab -e"
            )
    return said
