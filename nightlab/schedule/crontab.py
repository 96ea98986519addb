"""This user's crontab: one marked line is put in or taken out; every other byte stays as it is.

python-crontab is not used for this: it reads a crontab as a list of jobs and writes it anew, comments, environment and
unusual lines not always as they were.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping

from nightlab.failure import Failure, work_failed

from .crontab_text import LineState, edited, line_state, zones_before

N_TRIES = 3
TIMEOUT_S = 30.0


def put_line(line: str, mark: str) -> LineState:
    """The line becomes the only one with its mark, in the place of the one before or at the end; what was there.

    Raises:
        Failure: no crontab program, or it refuses.
    """
    return _edit(mark, line)


def remove_line(mark: str) -> LineState:
    """Takes it away, commented out or not; what was there.

    Raises:
        Failure: as `put_line`.
    """
    return _edit(mark, None)


def marked_line_state(mark: str) -> LineState:
    """
    Raises:
        Failure: as `put_line`.
    """
    return line_state(_read(), mark)


def zones_for(mark: str) -> Mapping[str, str]:
    """Time zones that the crontab sets before the marked line, by `CRON_TZ` and `TZ`.

    Raises:
        Failure: as `put_line`.
    """
    return zones_before(_read(), mark)


def _edit(mark: str, line: str | None) -> LineState:
    for _ in range(N_TRIES):
        before = _read()
        after = edited(before, None if line is None else os.fsencode(line), mark)
        if after == before:
            return line_state(before, mark)
        if _read() != before:
            continue  # Somebody edits it too: theirs first.
        _write(after)
        if _read() == after:
            return line_state(before, mark)
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
