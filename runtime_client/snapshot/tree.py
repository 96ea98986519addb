"""Which files of a folder are its code, and what the file system says about each. Reads names and stat data only."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pathspec import GitIgnoreSpec

from . import git

ALL_IS_CODE = ".nightlab-all-is-code"
"""A file that says of its folder: neither git nor `.gitignore` say what is code in it, all of it is."""
ALWAYS_LEFT_OUT = frozenset({".git", "__pycache__", ALL_IS_CODE})
"""Neither copied nor linked."""
LINKED_WITHOUT_GIT = frozenset({".venv", "venv", "node_modules", "mlruns", "wandb", ".tox", ".mypy_cache"})
"""What no `.gitignore` need name, in a folder that is in no work tree."""

Seen = tuple[int, int, int, int, int]
"""Size, mtime, ctime (ns), inode, mode: equal ones are the same content, unless it was changed just now."""


class SnapshotRefused(ValueError):
    """The folder can not be taken. The message says what to change."""


@dataclass(slots=True, kw_only=True)
class CodeTree:
    """Filled while a folder is walked; paths are relative to it."""

    files: dict[str, Seen] = field(default_factory=dict)
    """Plain files and symbolic links."""
    folders: dict[str, Seen] = field(default_factory=dict)
    """All that may hold code; `` (empty) is the folder itself."""
    linked: list[str] = field(default_factory=list)
    """Ignored files and folders."""
    watched: dict[str, Seen | None] = field(default_factory=dict)
    """Absolute paths outside of the tree whose change may change what belongs to it; None: not there."""
    commit: git.Commit | None = None
    """None: in no git work tree."""
    left_out: frozenset[str] = frozenset()
    """Real paths of files and folders that are not looked at."""

    @property
    def size_bytes(self) -> int:
        return sum(seen[0] for seen in self.files.values())


def seen_of(status: os.stat_result) -> Seen:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_mode


def look(path: str) -> Seen | None:
    """None: nothing is there."""
    try:
        return seen_of(os.lstat(path))
    except (FileNotFoundError, NotADirectoryError):
        return None


def walk(root: Path, *, left_out: frozenset[str] = frozenset()) -> CodeTree:
    """The code in a folder, by git where it is in a work tree, else by its `.gitignore` files.

    Args:
        left_out: real paths of files and folders that are no code, whatever git says: a home of nightlab below its
            code, what is kept from a job. Neither copied nor linked.

    Raises:
        SnapshotRefused: a part of it can not be read.
    """
    tree = CodeTree(left_out=left_out)
    is_all_code = os.path.lexists(root / ALL_IS_CODE)
    found = None if is_all_code else git.listing(root)
    try:
        if is_all_code:
            _walk(tree, str(root), "", _AllIsCode())
        elif found is None:
            _walk(tree, str(root), "", _IgnoreFiles(str(root)))
        else:
            tree.commit = found.commit
            tree.watched = {path: look(path) for path in found.watched}
            _walk(tree, str(root), "", _GitRules(found))
    except OSError as error:
        raise SnapshotRefused(
            f"the code in {root} can not be read: {error.filename}: {error.strerror}; make it readable, "
            "or submit with code_source.snapshot: off"
        ) from error
    return tree


class _AllIsCode:
    def enter(self, folder: str) -> None:
        """Nothing to read."""

    def is_ignored(self, path: str, is_folder: bool) -> bool:
        return False


class _GitRules:
    def __init__(self, found: git.GitListing) -> None:
        self._found = found

    def enter(self, folder: str) -> None:
        """Nothing to read: git has read it all."""

    def is_ignored(self, path: str, is_folder: bool) -> bool:
        if is_folder:
            return path in self._found.ignored
        return path not in self._found.files


class _IgnoreFiles:
    """The rules of the `.gitignore` files between the folder and a path."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._specs: dict[str, GitIgnoreSpec] = {}

    def enter(self, folder: str) -> None:
        try:
            with open(os.path.join(self._root, folder, ".gitignore"), encoding="utf-8", errors="replace") as file:
                self._specs[folder] = GitIgnoreSpec.from_lines(file)
        except (FileNotFoundError, IsADirectoryError):
            return

    def is_ignored(self, path: str, is_folder: bool) -> bool:
        if is_folder and os.path.basename(path) in LINKED_WITHOUT_GIT:
            return True
        folder = path
        while folder:
            folder = os.path.dirname(folder)
            spec = self._specs.get(folder)
            if spec is not None:
                below = os.path.relpath(path, folder) if folder else path
                decided = spec.check_file(below + "/" if is_folder else below).include
                if decided is not None:
                    return decided
        return False


_Rules = _AllIsCode | _GitRules | _IgnoreFiles


def _walk(tree: CodeTree, root: str, folder: str, rules: _Rules) -> None:
    place = os.path.join(root, folder)
    status = os.stat(place)
    tree.folders[folder] = seen_of(status)
    rules.enter(folder)
    for entry in _entries(place):
        path = f"{folder}/{entry.name}" if folder else entry.name
        is_folder = entry.is_dir(follow_symlinks=False)
        if entry.name in ALWAYS_LEFT_OUT or (tree.left_out and _is_left_out(tree, entry.path)):
            continue
        if rules.is_ignored(path, is_folder):
            _link(tree, entry, path)
        elif is_folder:
            _enter(tree, root, path, rules)
        else:
            status = entry.stat(follow_symlinks=False)
            if stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
                tree.files[path] = seen_of(status)


def _is_left_out(tree: CodeTree, path: str) -> bool:
    return os.path.realpath(path) in tree.left_out


def _link(tree: CodeTree, entry: os.DirEntry[str], path: str) -> None:
    """Of a folder in which something is left out, the other parts."""
    real = os.path.realpath(entry.path) + os.sep if tree.left_out else ""
    if not real or not any(one.startswith(real) for one in tree.left_out):
        tree.linked.append(path)
        return
    tree.folders[path] = seen_of(os.stat(entry.path))
    for part in _entries(entry.path):
        if not _is_left_out(tree, part.path):
            _link(tree, part, f"{path}/{part.name}")


def _enter(tree: CodeTree, root: str, path: str, rules: _Rules) -> None:
    """A folder below. One that is a repository of its own (a submodule, a clone) follows its own rules."""
    if isinstance(rules, _GitRules) and os.path.exists(os.path.join(root, path, ".git")):
        inner = walk(Path(root, path), left_out=tree.left_out)
        tree.files |= {f"{path}/{name}": seen for name, seen in inner.files.items()}
        tree.folders |= {f"{path}/{name}".rstrip("/"): seen for name, seen in inner.folders.items()}
        tree.linked += [f"{path}/{name}" for name in inner.linked]
        tree.watched |= inner.watched
    else:
        _walk(tree, root, path, rules)


def _entries(place: str) -> Iterator[os.DirEntry[str]]:
    with os.scandir(place) as entries:
        yield from sorted(entries, key=lambda entry: entry.name)
