"""systemd units of this user: their text from a cron expression, and putting them in force or out of it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from cronsim import CronSim

from nightlab.failure import work_failed
from nightlab.services.settings import write_private

DAYS = ("Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat")
TIMEOUT_S = 60.0


def unit_name(what: str, home: Path) -> str:
    """Without its ending; two homes never share one."""
    return f"nightlab-{what}-{sha256(os.fsencode(home)).hexdigest()[:8]}"


def units_folder() -> Path:
    named = os.environ.get("XDG_CONFIG_HOME")
    return (Path(named) if named else Path.home() / ".config") / "systemd" / "user"


def calendar_lines(expression: str) -> list[str]:
    """`OnCalendar` values that together start when the five cron fields do. Two where cron has either of two days."""
    from datetime import UTC, datetime

    parsed = CronSim(expression, datetime(2000, 1, 1, tzinfo=UTC))
    minutes, hours = _listed(parsed.minutes, 60), _listed(parsed.hours, 24)
    months, days = _listed(parsed.months, 12), _listed(parsed.days, 31)
    weekdays = sorted({day % 7 for day in parsed.weekdays if isinstance(day, int)})
    named = "" if len(weekdays) == len(DAYS) else ",".join(DAYS[day] for day in weekdays) + " "
    clock = f"{hours}:{minutes}:00"
    if parsed.day_and:
        return [f"{named}*-{months}-{days} {clock}"]
    return [f"*-{months}-{days} {clock}", f"{named}*-{months}-* {clock}"]


def _listed(values: set[int], n_all: int) -> str:
    return "*" if len(values) == n_all else ",".join(f"{value:02d}" for value in sorted(values))


def command_line(argv: Sequence[str]) -> str:
    """For `ExecStart=`: each argument quoted, with nothing left for systemd to expand."""
    return " ".join(_quoted(one) for one in argv)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$").replace("\n", "\\n")
    return f'"{escaped}"'


def sweep_units(name: str, sweep: str, expression: str, argv: Sequence[str]) -> dict[str, str]:
    """Text by file name. What the sweep leaves running, the runtime, outlives its unit (`KillMode=process`)."""
    starts = "\n".join(f"OnCalendar={line}" for line in calendar_lines(expression))
    return {
        f"{name}.service": (
            f"[Unit]\nDescription=nightlab sweep {sweep}\n\n"
            f"[Service]\nType=oneshot\nExecStart={command_line(argv)}\nTimeoutStartSec=infinity\n"
            "KillMode=process\nSuccessExitStatus=10 11 20\n"
        ),
        f"{name}.timer": (
            f"[Unit]\nDescription=starts of the nightlab sweep {sweep}\n\n"
            f"[Timer]\n{starts}\nPersistent=true\nRandomizedDelaySec=0\nAccuracySec=1s\n\n"
            "[Install]\nWantedBy=timers.target\n"
        ),
    }


def service_unit(name: str, argv: Sequence[str], home: Path, *, path: str) -> dict[str, str]:
    """The runtime: started again when it dies, not when it was stopped in order; training is left to the runtime."""
    shown = str(home).replace("%", "%%")
    return {
        f"{name}.service": (
            f"[Unit]\nDescription=nightlab runtime of {shown}\nStartLimitIntervalSec=0\n\n"
            f"[Service]\nType=exec\nEnvironment={command_line([f'PATH={path}']).replace('$$', '$')}\n"
            f"ExecStart={command_line(argv)}\nRestart=on-failure\nRestartSec=5\n"
            "KillMode=process\nTimeoutStopSec=15min\n\n[Install]\nWantedBy=default.target\n"
        )
    }


def put_units(units: Mapping[str, str], *, enable: str) -> None:
    """Write them and put `enable` in force now. On a failure nothing new is left.

    Raises:
        Failure: there is no systemd instance of this user, or it refuses.
    """
    folder = units_folder()
    folder.mkdir(parents=True, exist_ok=True)
    before = {name: (folder / name).read_bytes() for name in units if (folder / name).exists()}
    try:
        for name, text in units.items():
            write_private(folder / name, text)
        _systemctl("daemon-reload")
        _systemctl("enable", "--now", enable)
    except BaseException:
        for name in units:
            if name in before:
                (folder / name).write_bytes(before[name])
            else:
                (folder / name).unlink(missing_ok=True)
        raise


def remove_units(names: Sequence[str], *, disable: str) -> bool:
    """Whether there was any.

    Raises:
        Failure: as `put_units`.
    """
    folder = units_folder()
    found = [folder / name for name in names if (folder / name).exists()]
    if not found:
        return False
    _systemctl("disable", "--now", disable)
    for path in found:
        path.unlink(missing_ok=True)
    _systemctl("daemon-reload")
    return True


def has_instance() -> bool:
    """Whether a systemd instance of this user answers."""
    try:
        asked = ["systemctl", "--user", "show-environment"]
        done = subprocess.run(asked, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S, check=False)
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _systemctl(*arguments: str) -> None:
    try:
        done = subprocess.run(
            ["systemctl", "--user", *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError:
        raise work_failed(
            "there is no systemctl here: leave --systemd out, and cron is used.", code="no_systemd"
        ) from None
    except subprocess.TimeoutExpired:
        raise work_failed(f"systemctl did not end within {TIMEOUT_S:.0f} s.", code="no_systemd") from None
    if done.returncode != 0:
        said = done.stderr.strip() or done.stdout.strip()
        raise work_failed(
            f"systemctl --user {' '.join(arguments)}: {said}. Where this user has no systemd instance, log in anew or "
            "run `loginctl enable-linger`, or leave --systemd out, and cron is used.",
            code="no_systemd",
        )
