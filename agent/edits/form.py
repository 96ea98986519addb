"""What an edit comes to once it is read, whatever its form: for each file, spots with the lines that are there and the
lines that take their place. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

LARGEST_BYTES = 10_000_000
"""Of an edit, and of a file that is edited."""
MOST_SPOTS = 500
"""Blocks or hunks of one edit."""
_LONGEST_PATH = 1000
_LONGEST_NAME = 200
"""Bytes of one part of it; file systems take 255."""


class NotApplied(ValueError):
    """An edit could not be applied, or changes nothing. The message is for whoever wrote it: which part, what was
    expected, what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    name: str
    """How messages call it: `block 2`, `hunk 1`."""
    old: tuple[bytes, ...]
    """Lines without their `\\n`."""
    new: tuple[bytes, ...]
    line: int | None = None
    """Where the old lines are said to begin, from 1; None: not said."""
    is_old_bare: bool = False
    """The last old line is said to have no newline: it is the file's last."""
    is_new_bare: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEdit:
    path: str
    spots: tuple[Spot, ...]
    creates: bool = False
    """The file must not be there yet."""


def checked_path(path: str, name: str) -> str:
    """A path below the code's folder, as the sources are named. Raises NotApplied."""
    if len(path) > _LONGEST_PATH or any(len(part.encode(errors="replace")) > _LONGEST_NAME for part in path.split("/")):
        raise NotApplied(f"{name}: a path of {len(path)} characters, with a part that no file can be called by")
    plain = path
    while plain.startswith("./"):
        plain = plain[2:]
    parts = plain.split("/")
    if not plain or plain.startswith("/") or re.match(r"[A-Za-z]:", plain) or "\\" in plain or not plain.isprintable():
        raise NotApplied(f"{name}: {path!r} is no path below the code's folder; write it like models/net.py")
    if ".." in parts or "." in parts or "" in parts:
        raise NotApplied(f"{name}: {path!r}: leave out `.`, `..` and empty parts; write it like models/net.py")
    return plain
