"""A state of a session's code as a branch in the user's own repository: new objects and a new name, nothing else.

The branch begins at the commit that the session began from. Where files were uncommitted then, they are a commit of
their own, so that the last commit is the change alone. The checkout, the index and all other branches stay as they are.
"""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from agent.store.views import CodeState
from runtime_client.snapshot.git import GitFailed, ask_git, git_at, git_in

from .base import BaseFile
from .repository import change, commit_stream, removal
from .workshop import Workshop

_SUBMODULE = 0o160000
_FILTERS = ("filter", "ident", "working-tree-encoding")


class NotTaken(Exception):
    """No branch could be made. The message says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    branch: str
    commit: str
    start: str
    """The commit of the user that it begins at."""
    n_uncommitted: int
    """Files in a first commit of their own: uncommitted when the session began."""


def take(shop: Workshop, state: CodeState, branch: str, *, message: str, before: str, at: int) -> Taken:
    """Make the branch.

    Args:
        message: of the commit with the change.
        before: of the commit with what was uncommitted.
        at: date of both, in seconds since the epoch.

    Raises:
        NotTaken: there is no repository or no such commit in it, a branch of that name is there, or a file is stored in
            a way that git alone can not follow.
    """
    root = Path(shop.origin.root)
    start = _checked_start(shop, root, branch)
    prefix = os.fsdecode((ask_git(root, "rev-parse", "--show-prefix") or b"").rstrip(b"\n"))
    modes = _modes(root, start, prefix)
    modules = frozenset(path for path, mode in modes.items() if mode == _SUBMODULE)
    loose = [path for path in shop.origin.uncommitted if not _is_below(path, modules)]
    set_apart = set(loose)
    changed = [one.path for one in shop.differences(state)]
    inside = next((path for path in changed if _is_below(path, modules)), None)
    if inside is not None:
        raise NotTaken(f"{inside} is in a submodule; take the change as a patch: --patch FILE")
    files = {
        path: file if path in set_apart or path not in modes else replace(file, mode=modes[path])
        for path, file in shop.files(state, changed).items()
    }
    first = _changes(root, prefix, loose, shop.files(shop.base, loose))
    second = _changes(root, prefix, changed, files)
    stream = b""
    if first:
        stream += commit_stream(branch, before, start, first, at)
    stream += commit_stream(branch, message, start if not first else None, second, at)
    try:
        commit = _brought(root, branch, stream)
    except (GitFailed, OSError) as error:
        raise NotTaken(f"{error}; take the change as a patch: --patch FILE") from error
    return Taken(branch=branch, commit=commit, start=start, n_uncommitted=len(first))


def _checked_start(shop: Workshop, root: Path, branch: str) -> str:
    start = shop.origin.commit
    if not shop.origin.is_repository or start is None:
        what = "in no git repository" if not shop.origin.is_repository else "in a repository without commits"
        raise NotTaken(f"the code in {root} was {what}; take the change as a patch: --patch FILE")
    if ask_git(root, "rev-parse", "--git-dir") is None:
        raise NotTaken(f"git does not answer in {root} (no repository any more, or another owner); use --patch FILE")
    if ask_git(root, "cat-file", "-e", f"{start}^{{tree}}") is None:
        raise NotTaken(
            f"commit {start[:12]}, which the session began from, is not in {root} any more; use --patch FILE"
        )
    if ask_git(root, "check-ref-format", "--branch", branch) is None:
        raise NotTaken(f"{branch!r} is no name of a branch; give another one: --branch NAME")
    if ask_git(root, "show-ref", "--verify", "--quiet", f"refs/heads/{branch}") is not None:
        raise NotTaken(
            f"there is a branch {branch} in {root}; give another name (--branch NAME), or remove it: "
            f"git -C {shlex.quote(str(root))} branch -D {shlex.quote(branch)}"
        )
    return start


def _modes(root: Path, start: str, prefix: str) -> dict[str, int]:
    """Of the files and submodules below the code's folder, as the user's repository has them."""
    listing = ask_git(root, "ls-tree", "-r", "-z", "--full-tree", start, "--", *([prefix] if prefix else ())) or b""
    entries = [one.partition(b"\t") for one in listing.split(b"\0") if one]
    return {os.fsdecode(path).removeprefix(prefix): int(head.split()[0], 8) for head, _, path in entries}


def _is_below(path: str, folders: frozenset[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)


def _changes(root: Path, prefix: str, paths: list[str], files: Mapping[str, BaseFile]) -> list[bytes]:
    _check_filters(root, [path for path in paths if path in files])
    return [
        change(prefix + path, replace(files[path], content=_stored(root, path, files[path].content)))
        if path in files
        else removal(prefix + path)
        for path in paths
    ]


def _check_filters(root: Path, paths: list[str]) -> None:
    """Such files are stored in another form than they are worked on, which only the filter's program can make."""
    given = b"".join(os.fsencode(path) + b"\0" for path in paths)
    answer = git_at(root, "check-attr", "-z", "--stdin", *_FILTERS, given=given).split(b"\0")
    for path, name, value in zip(answer[::3], answer[1::3], answer[2::3], strict=False):
        if value not in (b"unspecified", b"unset"):
            attribute = f"{os.fsdecode(name)}={os.fsdecode(value)}"
            raise NotTaken(f"{os.fsdecode(path)} is stored by {attribute} (.gitattributes); use --patch FILE")


def _stored(root: Path, path: str, content: bytes) -> bytes:
    """With the line ends that the user's repository stores."""
    if b"\r\n" not in content:
        return content
    plain = content.replace(b"\r\n", b"\n")
    wanted = git_at(root, "hash-object", "--stdin", "--path", path, given=content)
    return plain if wanted == git_at(root, "hash-object", "--stdin", "--no-filters", given=plain) else content


def _brought(root: Path, branch: str, stream: bytes) -> str:
    """Make the commits beside the user's repository, then put them into it, the name last."""
    kind = git_at(root, "rev-parse", "--show-object-format").decode().strip()
    objects = git_at(root, "rev-parse", "--git-path", "objects").rstrip(b"\n")
    with tempfile.TemporaryDirectory(prefix="nightlab-take-") as name:
        place = Path(name, "made.git")
        place.mkdir()
        git_in(place, "init", "--quiet", "--bare", "--template=", f"--object-format={kind}")
        (place / "objects/info").mkdir(exist_ok=True)
        borrowed = os.path.join(os.path.realpath(root), os.fsdecode(objects))
        (place / "objects/info/alternates").write_bytes(os.fsencode(borrowed) + b"\n")
        git_in(place, "-c", "fastimport.unpackLimit=0", "fast-import", "--quiet", given=stream)
        commit = git_in(place, "rev-parse", "--verify", f"refs/heads/{branch}").decode().strip()
        for pack in sorted((place / "objects/pack").glob("*.pack")):
            git_at(root, "unpack-objects", "-q", given=pack.read_bytes())
    git_at(root, "update-ref", f"refs/heads/{branch}", commit, "0" * len(commit))
    return commit
