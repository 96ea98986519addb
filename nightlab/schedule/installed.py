"""What is installed for the sweeps of a home: one file each below `home/sweeps`, beside the times of its starts."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nightlab.failure import work_failed
from nightlab.services.settings import write_private

N_STARTS = 400
"""Starts that are remembered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """How a sweep is started, as found when it was installed."""

    sweep: str
    file: str
    """Absolute."""
    expression: str
    """Five cron fields, in this machine's time zone."""
    kind: str
    """cron, systemd."""
    executable: str
    """The Python that nightlab runs in."""
    python: str | None
    """The Python for jobs of tasks that name none."""
    path: str
    """PATH of the shell that it was installed from; cron's own has little more than /bin."""
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """When an installed sweep starts, and when it should have. Epochs."""

    sweep: str
    file: str
    expression: str
    kind: str
    next_at: float
    missed: tuple[float, ...]
    """Since it was installed: the machine was off, or cron did not run."""


def folder_of(home: Path) -> Path:
    return home / "sweeps"


def record_path(home: Path, sweep: str) -> Path:
    return folder_of(home) / f"{sweep}.json"


def starts_path(home: Path, sweep: str) -> Path:
    return folder_of(home) / f"{sweep}.starts"


def read_installed(home: Path, sweep: str) -> Installed | None:
    """None: it is not installed.

    Raises:
        Failure: it may be; the message says what to do.
    """
    path = record_path(home, sweep)
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return Installed(**found)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:
        raise work_failed(
            f"{path} is damaged ({error}): remove it, and install the sweep again, which replaces its line",
            code="damaged_record",
        ) from error


def all_installed(home: Path) -> list[Installed]:
    """By name."""
    found = (read_installed(home, path.stem) for path in sorted(folder_of(home).glob("*.json")))
    return [one for one in found if one is not None]


def save_installed(home: Path, installed: Installed) -> None:
    folder_of(home).mkdir(parents=True, exist_ok=True, mode=0o700)
    write_private(record_path(home, installed.sweep), json.dumps(asdict(installed), indent=1))


def forget_installed(home: Path, sweep: str) -> None:
    record_path(home, sweep).unlink(missing_ok=True)
    starts_path(home, sweep).unlink(missing_ok=True)


def note_start(home: Path, sweep: str, at: float) -> None:
    """Remember that cron or systemd started it then."""
    kept = [*starts(home, sweep), at][-N_STARTS:]
    write_private(starts_path(home, sweep), "".join(f"{one:.3f}\n" for one in kept))


def starts(home: Path, sweep: str) -> list[float]:
    try:
        lines = starts_path(home, sweep).read_text(encoding="utf-8").split()
    except FileNotFoundError:
        return []
    return [float(line) for line in lines if line.replace(".", "", 1).isdigit()]


def schedules(home: Path, now: float) -> list[Schedule]:
    """Of all that is installed, by name."""
    from agent.sweeps.calendar import zone
    from agent.sweeps.starts import missed_starts, next_starts

    where = zone(None)
    return [
        Schedule(
            sweep=one.sweep,
            file=one.file,
            expression=one.expression,
            kind=one.kind,
            next_at=next_starts(one.expression, where, now, 1)[0],
            missed=tuple(missed_starts(one.expression, where, one.at, now, started=starts(home, one.sweep))),
        )
        for one in all_installed(home)
    ]
