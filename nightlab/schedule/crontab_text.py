"""The bytes of a crontab: which line is ours, whether it is in force, what is set before it. Pure."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from enum import StrEnum
from hashlib import sha256
from pathlib import Path

from nightlab.failure import work_failed

MAX_COMMAND = 990
"""Debian's cron cuts a command at 1000 characters."""
ZONE_NAMES = ("CRON_TZ", "TZ")
_SETTING = re.compile(rb"""\s*(["']?)([A-Za-z_][A-Za-z0-9_]*)\1\s*=\s*(.*?)\s*""")
_TIMES = re.compile(rb"[0-9*@]")


class LineState(StrEnum):
    """What became of a marked line."""

    IN_FORCE = "in force"
    """Cron reads it."""
    COMMENTED_OUT = "commented out"
    """Somebody put a `#` before it: it is there, and starts nothing."""
    ABSENT = "absent"


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


def edited(before: bytes, line: bytes | None, mark: str) -> bytes:
    """The crontab with that one marked line, or without any, commented-out ones included. All other bytes are kept."""
    kept: list[bytes] = []
    for one in before.splitlines(keepends=True):
        if _state(one, mark) is LineState.ABSENT:
            kept.append(one)
        elif line is not None:
            kept.append(line + b"\n")
            line = None
    if line is not None:
        if kept and not kept[-1].endswith(b"\n"):
            kept[-1] += b"\n"
        kept.append(line + b"\n")
    return b"".join(kept)


def line_state(text: bytes, mark: str) -> LineState:
    """Of the marked line; in force where one of several is."""
    found = {_state(line, mark) for line in text.splitlines()}
    return next((one for one in LineState if one in found), LineState.ABSENT)


def zones_before(text: bytes, mark: str) -> Mapping[str, str]:
    """Time zones that are set before the marked line, by `CRON_TZ` and `TZ`; the last of each counts."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        if _state(line, mark) is LineState.IN_FORCE:
            break
        setting = _SETTING.fullmatch(line)
        if setting is not None and (name := os.fsdecode(setting[2])) in ZONE_NAMES:
            found[name] = _unquoted(os.fsdecode(setting[3]))
    return found


def _unquoted(text: str) -> str:
    is_quoted = len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'"
    return text[1:-1] if is_quoted else text


def _state(line: bytes, mark: str) -> LineState:
    """Of one line: a comment is a line of ours only where times come after its `#`."""
    stripped = line.strip()
    if not stripped.endswith(os.fsencode(mark)):
        return LineState.ABSENT
    if not stripped.startswith(b"#"):
        return LineState.IN_FORCE
    return LineState.COMMENTED_OUT if _TIMES.match(stripped.lstrip(b"# \t")) else LineState.ABSENT
