"""A tree of a session's repository as a folder: made whole or not at all, compared with the tree before each use.

Files are read-only and readable by all, since a sealed job is another user. What git ignored in the user's code is
data: the folder has links to it. Private files are in none. Callers hold a lock: one at a time works on the checkouts
of a session.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from runtime_client.snapshot.tree import ALL_IS_CODE

from .repository import LINK, Entry
from .rules import EditRules

_MAKING, _GONE, _NEW = ".making-", ".gone-", ".nightlab-new"
_SAID = b"All files in this folder are code: nightlab made it from a recorded state. Changes in it are undone.\n"
Contents = Callable[[list[str]], dict[str, bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a folder has to hold."""

    files: dict[str, Entry]
    links: dict[str, str]
    """Of data: where each leads."""

    @property
    def folders(self) -> set[str]:
        found: set[str] = set()
        for path in (*self.files, *self.links):
            while path := os.path.dirname(path):
                found.add(path)
        return found


def wanted(entries: Mapping[str, Entry], linked: Iterable[str], root: Path, rules: EditRules) -> Wanted:
    """Of a tree and of the user's ignored files: all but what is private."""
    files = {path: entry for path, entry in entries.items() if not rules.is_private(path)}
    taken = Wanted(files=files, links={}).folders
    links: dict[str, str] = {}
    for path in linked:
        _link(path, root, rules, taken | files.keys(), links)
    return Wanted(files=files, links=links)


def _link(path: str, root: Path, rules: EditRules, taken: set[str], links: dict[str, str]) -> bool:
    """Add links to a file or folder of data; of a folder in which something is private or taken, to its parts.

    Returns:
        Whether all of it was linked.
    """
    place = os.path.join(root, path)
    if rules.is_private(path) or (path in taken and not os.path.isdir(place)):
        return False
    is_folder = os.path.isdir(place) and not os.path.islink(place)
    if is_folder and (path in taken or any(_may_be_below(pattern, path) for pattern in rules.private)):
        below: dict[str, str] = {}
        parts = [_link(f"{path}/{name}", root, rules, taken, below) for name in sorted(os.listdir(place))]
        if path in taken or not all(parts):
            links |= below
            return False
    links[path] = place
    return True


def _may_be_below(pattern: str, folder: str) -> bool:
    """Whether a pattern could name something in a folder, by its parts before the first `**`."""
    for part, name in zip(pattern.removeprefix("./").split("/"), folder.split("/"), strict=False):
        if "**" in part:
            return True
        if part != name and not set("*?[") & set(part):
            return False
    return True


def place(folder: Path, want: Wanted, contents: Contents) -> None:
    """Make the folder hold exactly what is wanted. Raises OSError."""
    if folder.is_symlink() or not folder.is_dir():
        folder.unlink(missing_ok=True)
        _made(folder, want, contents)
    else:
        _mend(folder, want, contents)


def _made(folder: Path, want: Wanted, contents: Contents) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    place = Path(tempfile.mkdtemp(dir=folder.parent, prefix=_MAKING))
    try:
        place.chmod(0o755)
        _write(place, want, {*want.files, *want.links, ALL_IS_CODE}, contents)
        place.rename(folder)
    except BaseException:
        remove(place)
        raise


def _mend(folder: Path, want: Wanted, contents: Contents) -> None:
    seen: set[str] = set()
    extra: list[str] = []
    folders = want.folders
    _compare(str(folder), "", want, folders, seen, extra)
    for path in extra:
        remove(folder / path)
    missing = {*want.files, *want.links, ALL_IS_CODE} - seen
    if missing:
        _write(folder, want, missing, contents)


def _compare(top: str, below: str, want: Wanted, folders: set[str], seen: set[str], extra: list[str]) -> None:
    """Collect what is as it should be, and what should not be there."""
    place = os.path.join(top, below)
    if os.stat(place).st_mode & 0o7777 != 0o755:
        os.chmod(place, 0o755)
    with os.scandir(place) as entries:
        for entry in list(entries):
            path = f"{below}/{entry.name}" if below else entry.name
            if path in folders and entry.is_dir(follow_symlinks=False):
                _compare(top, path, want, folders, seen, extra)
            elif _is_right(entry, path, want):
                seen.add(path)
            else:
                extra.append(path)


def _is_right(entry: os.DirEntry[str], path: str, want: Wanted) -> bool:
    if path in want.links:
        return entry.is_symlink() and os.readlink(entry.path) == want.links[path]
    expected = want.files.get(path)
    if path != ALL_IS_CODE and expected is None:
        return False
    if expected is not None and expected.mode == LINK:
        return entry.is_symlink() and blob_id(os.fsencode(os.readlink(entry.path))) == expected.blob
    status = entry.stat(follow_symlinks=False)
    mode = 0o444 if expected is None else _mode(expected)
    if not stat.S_ISREG(status.st_mode) or stat.S_IMODE(status.st_mode) != mode:
        return False
    if expected is not None and status.st_size != expected.size_bytes:
        return False
    content = Path(entry.path).read_bytes()
    return content == _SAID if expected is None else blob_id(content) == expected.blob


def blob_id(content: bytes) -> str:
    """By which git knows a content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _mode(entry: Entry) -> int:
    return 0o555 if entry.mode == 0o100755 else 0o444


def _write(place: Path, want: Wanted, paths: set[str], contents: Contents) -> None:
    """Each file appears whole, so that who reads the folder meanwhile sees none half written."""
    found = contents([want.files[path].blob for path in paths if path in want.files])
    for name in sorted(want.folders):
        (place / name).mkdir(exist_ok=True)
        (place / name).chmod(0o755)
    for path in sorted(paths):
        target = os.path.join(place, path)
        new = os.path.join(os.path.dirname(target), _NEW)
        entry = want.files.get(path)
        if path in want.links:
            os.symlink(want.links[path], new)
        elif entry is not None and entry.mode == LINK:
            os.symlink(os.fsdecode(found[entry.blob]), new)
        else:
            _write_file(new, _SAID if entry is None else found[entry.blob], 0o444 if entry is None else _mode(entry))
        os.rename(new, target)


def _write_file(path: str, content: bytes, mode: int) -> None:
    with open(path, "xb") as file:
        file.write(content)
        os.fchmod(file.fileno(), mode)


def sweep(folder: Path, kept: Callable[[str], bool]) -> None:
    """Remove the checkouts that are not kept, and what killed processes left."""
    for one in list(folder.iterdir()) if folder.is_dir() else []:
        if kept(one.name):
            continue
        gone = one.with_name(f"{_GONE}{one.name}")  # So that none is there in part.
        remove(gone)
        one.rename(gone)
        remove(gone)


def remove(place: Path) -> None:
    """Whatever is there, also what was made unreadable; nothing, where nothing is."""
    if place.is_symlink() or not place.is_dir():
        place.unlink(missing_ok=True)
        return
    for top, folders, _ in os.walk(place):
        for name in folders:
            path = os.path.join(top, name)
            if not os.path.islink(path):
                os.chmod(path, 0o755)
    shutil.rmtree(place, ignore_errors=True)
