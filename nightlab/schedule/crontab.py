"""This user's crontab: one marked line is put in or taken out; every other byte stays as it is.

python-crontab is not used for this: it reads a crontab as a list of jobs and writes it anew, comments, environment and
unusual lines not always as they were.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from nightlab.failure import Failure, work_failed

MAX_COMMAND = 990
"""Debian's cron cuts a command at 1000 characters."""
N_TRIES = 3
TIMEOUT_S = 30.0


def mark_of(what: str, home: Path) -> str:
    """The end of the line that belongs to it; two homes never share one."""
    return f"# nightlab {what} (home {sha256(os.fsencode(home)).hexdigest()[:8]})"


def line_of(when: str, argv: Sequence[str], mark: str) -> str:
    """A line of a crontab: quoted for the shell, and % escaped, which cron would take for a line break.

    Raises:
        Failure: cron could not hold it.
    """
    command = f"{shlex.join(argv)} {mark}".replace("%", "\\%")
    if "\n" in command or len(command) > MAX_COMMAND:
        raise work_failed(
            "the paths of the interpreter and of the home are too long for a line of the crontab, or have a line break "
            "in them; use shorter ones, or --systemd.",
            code="crontab_line_too_long",
        )
    return f"{when} {command}"


def put_line(line: str, mark: str) -> None:
    """The line becomes the only one with its mark, in the place of the one before or at the end.

    Raises:
        Failure: no crontab program, or it refuses.
    """
    _edit(mark, line)


def remove_line(mark: str) -> bool:
    """Whether there was one.

    Raises:
        Failure: as `put_line`.
    """
    return _edit(mark, None)


def marked_line(mark: str) -> str | None:
    """The line in force, or None.

    Raises:
        Failure: as `put_line`.
    """
    return next((os.fsdecode(line) for line in _read().splitlines() if _has_mark(line, mark)), None)


def edited(before: bytes, line: bytes | None, mark: str) -> bytes:
    """The crontab with that one marked line, or without any. All other bytes are kept."""
    kept: list[bytes] = []
    for one in before.splitlines(keepends=True):
        if not _has_mark(one, mark):
            kept.append(one)
        elif line is not None:
            kept.append(line + b"\n")
            line = None
    if line is not None:
        if kept and not kept[-1].endswith(b"\n"):
            kept[-1] += b"\n"
        kept.append(line + b"\n")
    return b"".join(kept)


def _has_mark(line: bytes, mark: str) -> bool:
    return line.rstrip().endswith(os.fsencode(mark)) and not line.lstrip().startswith(b"#")


def _edit(mark: str, line: str | None) -> bool:
    for _ in range(N_TRIES):
        before = _read()
        after = edited(before, None if line is None else os.fsencode(line), mark)
        if after == before:
            return False
        if _read() != before:
            continue  # Somebody edits it too: theirs first.
        _write(after)
        if _read() == after:
            return True
    raise work_failed(
        "the crontab is changed by somebody else at the same time; do this again when it is left alone, and look at "
        "it with: crontab -l",
        code="crontab_changed",
    )


def _read() -> bytes:
    done = _run(["-l"], b"")
    if done.returncode == 0:
        return done.stdout
    if b"no crontab for" in done.stderr:
        return b""
    raise _refused(done.stderr)


def _write(text: bytes) -> None:
    done = _run(["-"], text)
    if done.returncode != 0:
        raise _refused(done.stderr)


def _run(arguments: list[str], text: bytes) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        return subprocess.run(
            ["crontab", *arguments], input=text, capture_output=True, timeout=TIMEOUT_S, env=environment, check=False
        )
    except FileNotFoundError:
        raise work_failed(
            "there is no crontab program here; install cron (on Debian: apt-get install cron), or use --systemd.",
            code="no_crontab",
        ) from None
    except subprocess.TimeoutExpired:
        raise work_failed(f"the crontab program did not end within {TIMEOUT_S:.0f} s.", code="crontab_hangs") from None


def _refused(said: bytes) -> Failure:
    words = said.decode(errors="replace").strip() or "no reason given"
    hint = " Ask who runs this machine to name you in /etc/cron.allow, or use --systemd." if "allow" in words else ""
    return work_failed(f"the crontab program refuses: {words}.{hint}", code="crontab_refused")
