"""What git says about a folder: which files are code, at which commit, and what was changed since.

Every call runs git itself, without locks and without asking anybody; a folder that is in no work tree, or a machine
without git, has no answer (None). Repositories of our own are written to here as well (`git_in`), by no rules but ours.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ANSWER_S = 60.0
_IDENTITY = ("nightlab", "nightlab@localhost")
DIFF_LIMIT_BYTES = 8 * 1024 * 1024
"""A longer difference is cut: the archive has the files themselves."""


class GitFailed(Exception):
    """Git could not do what was asked of it in a repository of ours; the message has its own words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    commit: str | None
    """None: nothing was committed yet."""
    branch: str | None
    """None: a detached head."""
    is_dirty: bool
    """Files differ from the commit, or are unknown to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GitListing:
    files: frozenset[str]
    """Code: tracked or new files, relative to the folder. A folder among them is a repository of its own."""
    ignored: frozenset[str]
    """What the rules of git leave out; of an ignored folder only its name. Relative to the folder."""
    commit: Commit
    watched: tuple[str, ...]
    """Absolute paths whose change may change this answer."""


def listing(folder: Path) -> GitListing | None:
    """Source: git's `status --porcelain=v2`, `ls-files` (git-scm.com)."""
    place = ask_git(folder, "rev-parse", "--show-prefix", "--absolute-git-dir", "--git-common-dir")
    if place is None:
        return None
    prefix, git_dir, common = (os.fsdecode(line) for line in place.split(b"\n")[:3])
    status = ask_git(
        folder, "status", "--porcelain=v2", "--branch", "-z", "--ignored=matching", "--untracked-files=all", "--", "."
    )
    tracked = ask_git(folder, "ls-files", "-z", "--cached")
    if status is None or tracked is None:
        return None
    files = {os.fsdecode(name) for name in tracked.split(b"\0") if name}
    ignored: set[str] = set()
    heads: dict[str, str] = {}
    is_dirty = False
    for kind, text in _entries(status):
        if kind == "#":
            name, _, value = text.partition(" ")
            heads[name] = value
        elif kind == "!":
            ignored.add(text.removeprefix(prefix).rstrip("/"))
        else:
            is_dirty = True
            if kind == "?":
                files.add(text.removeprefix(prefix).rstrip("/"))
    commit, branch = heads.get("branch.oid"), heads.get("branch.head")
    return GitListing(
        files=frozenset(files),
        ignored=frozenset(ignored),
        commit=Commit(
            commit=None if commit == "(initial)" else commit,
            branch=None if branch == "(detached)" else branch,
            is_dirty=is_dirty,
        ),
        watched=_watched(git_dir, os.path.join(str(folder), common), branch),
    )


def difference(folder: Path) -> bytes:
    """The changes to tracked files since the commit, as a patch; empty when there are none, or no commit."""
    found = ask_git(folder, "diff", "--binary", "--no-color", "--no-ext-diff", "HEAD", "--", ".")
    return (found or b"")[:DIFF_LIMIT_BYTES]


def _watched(git_dir: str, common: str, branch: str | None) -> tuple[str, ...]:
    """Of the repository: head, index, rules. A commit changes the head's log of moves, or the branch's file."""
    inside = [os.path.join(git_dir, name) for name in ("HEAD", "index", "logs/HEAD")]
    shared = [os.path.join(common, name) for name in ("info/exclude", "packed-refs")]
    if branch is not None:
        shared.append(os.path.join(common, "refs/heads", branch))
    return (*inside, *shared, os.path.expanduser("~/.config/git/ignore"), os.path.expanduser("~/.gitconfig"))


def _entries(status: bytes) -> Iterator[tuple[str, str]]:
    """(kind, text) of each entry; renamed ones carry a second path, which is skipped."""
    parts = iter(status.split(b"\0"))
    for part in parts:
        if not part:
            continue
        kind = chr(part[0])
        if kind == "2":
            next(parts, None)
        yield kind, os.fsdecode(part[2:])


def ask_git(folder: Path, *words: str, within_s: float = ANSWER_S) -> bytes | None:
    """What git answers in a folder, without locks, hooks or questions to anybody; None: it fails, or there is none."""
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        environment.pop(name, None)  # A hook of another repository may be what runs us.
    try:
        answer = subprocess.run(
            ["git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", *words],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=within_s,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout if answer.returncode == 0 else None


def uncommitted(folder: Path) -> list[str] | None:
    """Files in a folder that differ from the commit, or are unknown to it, relative to it; None: in no work tree.

    A file that was moved counts under both names.
    """
    place = ask_git(folder, "rev-parse", "--show-prefix")
    status = ask_git(folder, "status", "--porcelain=v2", "-z", "--untracked-files=all", "--", ".")
    if place is None or status is None:
        return None
    prefix = os.fsdecode(place.rstrip(b"\n"))
    found: set[str] = set()
    parts = iter(status.split(b"\0"))
    n_words = {"1": 8, "2": 9, "u": 10, "?": 1}
    for part in parts:
        kind = part[:1].decode()
        if kind in n_words:
            found.add(os.fsdecode(part.split(b" ", n_words[kind])[-1]))
        if kind == "2":
            found.add(os.fsdecode(next(parts, b"")))
    return sorted(name.removeprefix(prefix).rstrip("/") for name in found if name.startswith(prefix))


def git_in(
    repository: Path, *words: str, given: bytes = b"", held: int | None = None, within_s: float = 300.0
) -> bytes:
    """What git answers in a repository of ours: without the machine's or the user's configuration, hooks or filters.

    Args:
        given: what it reads.
        held: an open file that git keeps open as well: a lock on it lasts until git has ended, also where this process
            is killed.

    Raises:
        GitFailed: it fails, takes too long, or there is none.
    """
    name, address = _IDENTITY
    environment = {
        **{key: value for key, value in _outside_environment().items() if not key.startswith("GIT_CONFIG")},
        "GIT_DIR": str(repository),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": name,
        "GIT_AUTHOR_EMAIL": address,
        "GIT_COMMITTER_NAME": name,
        "GIT_COMMITTER_EMAIL": address,
    }
    return _said(repository, words, environment, given=given, held=held, within_s=within_s)


def git_at(folder: Path, *words: str, given: bytes = b"", within_s: float = 300.0) -> bytes:
    """What git answers in a folder of the user, by the user's configuration, without hooks.

    Raises:
        GitFailed: it fails, takes too long, or there is none.
    """
    return _said(folder, words, _outside_environment(), given=given, held=None, within_s=within_s)


def _outside_environment() -> dict[str, str]:
    """Without what a git that runs us has said of its own repository."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_") or "CONFIG" in key}
    return {**environment, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}


def _said(
    folder: Path, words: Sequence[str], environment: dict[str, str], *, given: bytes, held: int | None, within_s: float
) -> bytes:
    try:
        answer = subprocess.run(
            ["git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", *words],
            cwd=folder if folder.is_dir() else None,
            env=environment,
            input=given,
            capture_output=True,
            timeout=within_s,
            check=False,
            pass_fds=() if held is None else (held,),
        )
    except FileNotFoundError as error:
        raise GitFailed("there is no git on this machine; install it (on Debian: apt install git)") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GitFailed(f"git {words[0]} in {folder}: {error}") from error
    if answer.returncode != 0:
        said = answer.stderr.decode(errors="replace").strip()[-1000:]
        raise GitFailed(f"git {words[0]} in {folder} failed (exit {answer.returncode}): {said}")
    return answer.stdout
