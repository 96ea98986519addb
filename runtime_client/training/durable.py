"""Folders that appear whole or not at all, also when the power fails; and that go in the same way."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from .manifest import MARKER, folder_name, marker_text

WRITING = ".writing-"
DELETING = ".deleting-"
UNREADABLE = ".unreadable-"


def publish(root: Path, step: int, fill: Callable[[Path], None]) -> Path:
    """Make the checkpoint of a step from what `fill` writes into a new folder. Raises what `fill` raises, OSError.

    After an error, as after a power cut at any moment, everything that was there before is there still.
    """
    writing = begin(root, step)
    try:
        fill(writing)
        return finish(root, step)
    except BaseException:
        shutil.rmtree(writing, ignore_errors=True)
        raise


def begin(root: Path, step: int) -> Path:
    """An empty folder that nobody takes for a checkpoint; `finish` makes it one."""
    root.mkdir(parents=True, exist_ok=True)
    writing = _writing(root, step)
    shutil.rmtree(writing, ignore_errors=True)
    writing.mkdir()
    return writing


def finish(root: Path, step: int) -> Path:
    """Make what was written durable, mark it complete, and give it its name. Raises OSError."""
    writing, folder = _writing(root, step), root / folder_name(step)
    sizes: dict[str, int] = {}
    for path in _files_below(writing):
        sizes[path.relative_to(writing).as_posix()] = path.lstat().st_size
        sync(path)
    for place, _, _ in os.walk(writing, topdown=False):
        sync(Path(place))
    _write_durable(writing / MARKER, marker_text(step, sizes).encode())
    sync(writing)
    remove(folder)
    os.rename(writing, folder)
    sync(root)
    return folder


def remove(folder: Path) -> None:
    """Delete a checkpoint, if there is one; half deleted it is not taken for one."""
    gone = folder.with_name(DELETING + folder.name)
    shutil.rmtree(gone, ignore_errors=True)
    try:
        os.rename(folder, gone)
    except FileNotFoundError:
        return
    shutil.rmtree(gone, ignore_errors=True)


def set_aside(folder: Path) -> None:
    """Take its name from a checkpoint that can not be read, so that nobody chooses it again."""
    aside = folder.with_name(UNREADABLE + folder.name)
    shutil.rmtree(aside, ignore_errors=True)
    os.rename(folder, aside)


def sweep(root: Path) -> None:
    """Delete what a process that was killed left half written or half deleted."""
    if root.is_dir():
        for path in list(root.iterdir()):
            if path.name.startswith((WRITING, DELETING)):
                shutil.rmtree(path, ignore_errors=True)


def sync(path: Path) -> None:
    """Make a file, or the names in a folder, durable. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _writing(root: Path, step: int) -> Path:
    return root / f"{WRITING}{folder_name(step)}"


def _files_below(folder: Path) -> Iterator[Path]:
    for place, _, names in os.walk(folder):
        for name in names:
            path = Path(place, name)
            if path.is_file() and not path.is_symlink():
                yield path


def _write_durable(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
