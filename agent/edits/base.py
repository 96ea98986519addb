"""What a session's edits begin from: the user's code as it is, uncommitted changes included, read and checked once.

The files are those that a job's snapshot would have. Nothing is written here.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from runtime_client.snapshot.git import Commit, uncommitted
from runtime_client.snapshot.store import MOST_FILES
from runtime_client.snapshot.tree import ALWAYS_LEFT_OUT, CodeTree, SnapshotRefused, walk

from .rules import EditRules

_N_NAMED = 3


class CodeRefused(ValueError):
    """Code that no session can edit as it is. The message says what to change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseFile:
    mode: int
    """0o100644, 0o100755, 0o120000 (a symbolic link)."""
    content: bytes
    """Of a link its target."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseCode:
    files: dict[str, BaseFile]
    linked: tuple[str, ...]
    """What git ignores: data, to which checkouts have links."""
    commit: Commit | None
    """None: in no git work tree."""
    uncommitted: tuple[str, ...]
    """Files that differ from the commit, or are unknown to it."""

    @property
    def note(self) -> str | None:
        """What is unusual about it, for a person; None: exactly a commit."""
        if self.commit is None:
            return "the code is in no git repository: the base is its files as they are"
        if self.commit.commit is None:
            return "nothing is committed in the code's repository yet: the base is its files as they are"
        if not self.uncommitted:
            return None
        n, named = len(self.uncommitted), ", ".join(self.uncommitted[:_N_NAMED])
        more = f" and {n - _N_NAMED} more" if n > _N_NAMED else ""
        what = "uncommitted file is" if n == 1 else "uncommitted files are"
        return f"{n} {what} part of the base: {named}{more}"


def base_code(root: Path, rules: EditRules, *, left_out: frozenset[str], limit_mb: int) -> BaseCode:
    """The code in a folder.

    Raises:
        CodeRefused: it is not there, not readable, too large, has links that lead out of it, or nothing of it may be
            edited.
    """
    if not root.is_dir():
        raise CodeRefused(f"job.code_source.root_path {str(root)!r} is not a folder; give the folder with the code")
    try:
        tree = walk(root, left_out=left_out)
        changed = uncommitted(root) or []
        _check_size(root, tree, limit_mb)
        _check_editable(root, tree, rules)
        files = {path: _read(root, path, rules) for path in tree.files}
    except SnapshotRefused as error:
        raise CodeRefused(str(error).partition(", or submit with")[0]) from error
    except OSError as error:
        raise CodeRefused(
            f"the code in {root} can not be read: {error.filename}: {error.strerror}; if it was changed just now, "
            "start again, else make it readable"
        ) from error
    return BaseCode(
        files=files,
        linked=tuple(sorted(tree.linked)),
        commit=tree.commit,
        uncommitted=tuple(path for path in changed if _is_of_code(path, root, tree)),
    )


def _is_of_code(path: str, root: Path, tree: CodeTree) -> bool:
    """Whether what git calls changed is a file of the code, one that was removed, or a submodule."""
    if path in tree.files or path in tree.folders:
        return True
    return not os.path.lexists(root / path) and ALWAYS_LEFT_OUT.isdisjoint(path.split("/"))


def _check_size(root: Path, tree: CodeTree, limit_mb: int) -> None:
    if tree.size_bytes > limit_mb * 1_000_000 or len(tree.files) > MOST_FILES:
        largest = sorted(tree.files, key=lambda path: tree.files[path][0], reverse=True)[:_N_NAMED]
        shown = ", ".join(f"{path} ({tree.files[path][0] / 1e6:.1f} MB)" for path in largest)
        raise CodeRefused(
            f"the code in {root} is {tree.size_bytes / 1e6:.0f} MB in {len(tree.files)} files; the limits are "
            f"{limit_mb} MB and {MOST_FILES} files. The largest: {shown}. Have .gitignore name what is data (jobs "
            "find it by links), or raise job.code_source.snapshot_limit_mb"
        )


def _check_editable(root: Path, tree: CodeTree, rules: EditRules) -> None:
    """Every pattern names at least one plain file, not all of them private."""
    for pattern in rules.editable:
        one = EditRules(editable=(pattern,), private=rules.private)
        found = [path for path in tree.files if one.is_editable(path)]
        if not found:
            private = EditRules(editable=(pattern,))
            why = "all that it names is private" if any(map(private.is_editable, tree.files)) else "there is none"
            ignored = [path for path in tree.linked if private.is_editable(path)]
            if ignored:
                why = f"{ignored[0]} is ignored by git, so it is data and no code"
            raise CodeRefused(f"code.editable: {pattern!r} names no file of the code in {root}: {why}")
        if all(stat.S_ISLNK(tree.files[path][4]) for path in found):
            raise CodeRefused(
                f"code.editable: {pattern!r} is a symbolic link ({found[0]}); name the file that it leads to"
            )


def _read(root: Path, path: str, rules: EditRules) -> BaseFile:
    place = os.path.join(root, path)
    if os.path.islink(place):
        target = os.readlink(place)
        inside = os.path.normpath(os.path.join(os.path.dirname(path), target))
        if (os.path.isabs(target) or inside == ".." or inside.startswith("../")) and not rules.is_private(path):
            raise CodeRefused(
                f"{path} in {root} is a link that leads out of the code (to {target}), where edits would not reach: "
                "have .gitignore name it, so that jobs have a link to it, or put the files there"
            )
        return BaseFile(mode=0o120000, content=os.fsencode(target))
    descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        is_program = os.fstat(descriptor).st_mode & stat.S_IXUSR
        return BaseFile(mode=0o100755 if is_program else 0o100644, content=file.read())
