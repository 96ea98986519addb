"""What a training left, read as what it is: files that nobody has read, made by code that nobody has read.

A link among them may lead to the scorer's own data, a pipe may never end. Standard library only.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from .errors import NotUsable

_AFTER = "NIGHTLAB_AFTER_FOLDERS"
_LINKS = frozenset({errno.ELOOP, errno.ENOTDIR})


def training_folder() -> Path:
    """The folder of the job that this one measures, with `work` (its working folder) and `checkpoints` in it.

    Raises:
        ValueError: this is no scorer's job.
    """
    folders = _folders()
    if len(folders) != 1:
        raise ValueError(f"{_AFTER} names {len(folders)} folders: a scorer has one; try it with that variable set")
    return folders[0]


def read_left(path: str | os.PathLike[str], *, most_bytes: int = 2**28) -> bytes:
    """The bytes of a plain file below `training_folder()`.

    Args:
        path: relative to it, as `work/model.npz`.
        most_bytes: that the file may have.

    Raises:
        NotUsable: it is not there, larger, no plain file, or reached by a link.
    """
    parts = Path(path).parts
    if not parts or ".." in parts or Path(path).is_absolute():
        raise ValueError(f"{os.fspath(path)!r}: give a path below the training's folder, as work/model.npz")
    try:
        descriptor = _opened(str(training_folder()), parts)
    except OSError as error:
        what = "is a link, or no folder, on the way" if error.errno in _LINKS else error.strerror
        raise NotUsable(f"training left no {os.fspath(path)} that can be read: {what}") from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise NotUsable(f"what training left as {os.fspath(path)} is no plain file")
        if status.st_size > most_bytes:
            raise NotUsable(
                f"what training left as {os.fspath(path)} has {status.st_size} bytes, and {most_bytes} are allowed"
            )
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(status.st_size)
    finally:
        os.close(descriptor)


def check_leads_nowhere(path: Path) -> None:
    """Raise NotUsable where a path is a link, or leads through a link of training's; ValueError: nothing is there."""
    for folder in _folders():
        if path.is_relative_to(folder):
            between = [part for part in (path, *path.parents) if part.is_relative_to(folder) and part != folder]
            break
    else:
        between = [path]
    linked = next((part for part in between if part.is_symlink()), None)
    if linked is not None or ".." in path.parts:
        raise NotUsable(f"{linked or path} leads elsewhere: a candidate may read files and folders, not through links")
    if not path.exists():
        raise ValueError(f"{str(path)!r} is not there: name the candidate's folder and what training left")
    if not (path.is_file() or path.is_dir()):
        raise NotUsable(f"{path} is neither a file nor a folder")


def _folders() -> list[Path]:
    return [Path(folder) for folder in os.environ.get(_AFTER, "").split(os.pathsep) if folder]


def _opened(folder: str, parts: tuple[str, ...]) -> int:
    """The last part, opened without following a link on the way, and without waiting for the other end of a pipe."""
    place = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts[:-1]:
            inner = os.open(part, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place)
            os.close(place)
            place = inner
        return os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=place)
    finally:
        os.close(place)
