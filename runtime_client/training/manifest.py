"""The form of a checkpoint: a folder `step-<n>` that holds a file `COMPLETE`, which is written last.

The SDK writes into that file which other files there are and how large each is, so that a folder that lost some
of them is seen to be torn. Anybody else may leave it empty, or write what they like. Standard library only.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

MARKER = "COMPLETE"
_STEP = re.compile(r"step-(\d{1,18})")
_MOST_BYTES = 16 * 1024 * 1024
"""Of a marker; a manifest of a hundred thousand files has fewer."""


def folder_name(step: int) -> str:
    """
    Raises:
        ValueError: no step.
    """
    if isinstance(step, bool) or not isinstance(step, int) or not 0 <= step < 10**18:
        raise ValueError(f"a checkpoint's step is a whole number from 0, not {step!r}")
    return f"step-{step}"


def step_of(name: str) -> int | None:
    """The step in a folder's name; None: no name of a checkpoint."""
    found = _STEP.fullmatch(name)
    return int(found[1]) if found else None


def marker_text(step: int, sizes: Mapping[str, int]) -> str:
    """What the marker says: sizes in bytes by path relative to the folder."""
    return json.dumps({"step": step, "files": dict(sizes)})


def is_complete(folder: Path) -> bool:
    """Whether the marker is there, and everything that it lists, whole. Links lead out and do not count."""
    try:
        text = _read_plain(folder / MARKER)
    except OSError:
        return False
    if not text.startswith(b"{"):
        return True
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return not isinstance(said, dict) or _has_all(folder, said.get("files"))


def steps_in(checkpoint_dir: Path) -> list[tuple[int, Path]]:
    """Step and folder of everything there that is named like a checkpoint, newest first, complete or not.

    A job may have put anything in the folder's place: what is no folder that we may look into holds none.
    """
    try:
        with os.scandir(checkpoint_dir) as entries:
            names = [entry.name for entry in entries]
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []
    except OSError as error:
        if error.errno == errno.ELOOP:
            return []
        raise
    found = [(step, name) for name in names if (step := step_of(name)) is not None]
    return [(step, checkpoint_dir / name) for step, name in sorted(found, reverse=True)]


def complete_in(checkpoint_dir: Path) -> Iterator[tuple[int, Path]]:
    """Step and folder of the complete checkpoints, newest first; each is looked at when it is asked for."""
    for step, folder in steps_in(checkpoint_dir):
        if is_complete(folder):
            yield step, folder


def _read_plain(path: Path) -> bytes:
    """A file that is no link, pipe or folder. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise FileNotFoundError(errno.ENOENT, "no plain file", str(path))
        return file.read(_MOST_BYTES)


def _has_all(folder: Path, files: Any) -> bool:
    if files is None:
        return True
    if not isinstance(files, dict):
        return False
    for name, size in files.items():
        try:
            found = os.lstat(folder / name)
        except (OSError, ValueError):
            return False
        if not stat.S_ISREG(found.st_mode) or found.st_size != size:
            return False
    return True
