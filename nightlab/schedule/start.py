"""What cron and systemd start: `python -P -m nightlab.schedule.start HOME SWEEP`.

It notes the start, gives the sweep a log that rotates, the PATH of the shell that it was installed from and a folder
that exists, and becomes `nightlab sweep run`. Nothing here depends on the environment or the folder it is started in.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import NoReturn

from agent.log_files import rotate
from nightlab.failure import Failure
from nightlab.services.settings import ServiceFiles

from .installed import Installed, note_start, read_installed


def run_command(home: Path, installed: Installed) -> list[str]:
    """The command of one night, absolute in all its parts."""
    python = [] if installed.python is None else ["--python", installed.python]
    command = [installed.executable, "-P", "-m", "nightlab", "sweep", "run", installed.file]
    return [*command, "--home", str(home), *python]


def _note_start(home: Path, sweep: str) -> None:
    """A start that can not be noted, on a full disk, is a start all the same; `sweep list` will call it missed."""
    try:
        note_start(home, sweep, time.time())
    except OSError as error:
        print(f"nightlab: the start of {sweep} can not be noted: {error}", file=sys.stderr, flush=True)


def main(arguments: list[str]) -> NoReturn:
    home, sweep = Path(arguments[0]), arguments[1]
    try:
        installed = read_installed(home, sweep)
    except Failure as error:
        print(f"nightlab: {error.message}", file=sys.stderr)
        sys.exit(2)
    if installed is None:
        print(f"nightlab: the sweep {sweep} is not installed in {home}; install it again.", file=sys.stderr)
        sys.exit(2)
    log = ServiceFiles(home).log(f"sweep-{sweep}")
    log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    rotate(log)
    nothing = os.open(os.devnull, os.O_RDONLY)
    output = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.dup2(nothing, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    _note_start(home, sweep)
    os.chdir(home)
    command = run_command(home, installed)
    os.execve(command[0], command, {**os.environ, "PATH": installed.path, "PYTHONUNBUFFERED": "1"})


if __name__ == "__main__":
    main(sys.argv[1:])
