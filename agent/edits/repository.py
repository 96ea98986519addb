"""The git repository of a session: trees, commits on branches, differences. Nobody's checkout, nobody's configuration.

Writers take turns by a lock on a file, which git itself holds as long as it runs: what a killed process left half
written is removed by the next one. All commits have one date, so that the same edit made again is the same commit.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from runtime_client.snapshot.git import git_in

from .base import BaseFile

LINK = 0o120000
_LOOSE_OBJECTS = 2000
"""So many files of single objects, and git packs them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    mode: int
    """0o100644, 0o100755, 0o120000 (a symbolic link)."""
    blob: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDifference:
    path: str
    added: int
    """Lines; 0 of a binary file, as with `removed`."""
    removed: int


@contextmanager
def locked(path: Path) -> Iterator[int]:
    """Hold a lock on a file, among threads and processes; yields the open file, which may be handed to a child."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


class Repository:
    def __init__(self, place: Path, lock: Path) -> None:
        self.place = place
        self._lock = lock
        self._entries: dict[str, dict[str, Entry]] = {}

    @staticmethod
    def make(place: Path, files: Mapping[str, BaseFile], *, branch: str, message: str, at: int, held: int) -> str:
        """A new repository with one commit of these files; the id of the commit."""
        place.mkdir(parents=True)
        git_in(place, "init", "--quiet", "--bare", "--template=", "--object-format=sha1", f"--initial-branch={branch}")
        changes = [change(path, file) for path, file in sorted(files.items())]
        stream = commit_stream(branch, message, None, changes, at)
        return _answered(git_in(place, "fast-import", "--quiet", given=stream, held=held))[0]

    def commit(
        self, branch: str, parent: str, changed: Mapping[str, BaseFile], *, message: str, at: int
    ) -> tuple[str, str]:
        """The parent with these files put into it, as the end of a branch, which is moved there; (commit, tree)."""
        changes = [change(path, file) for path, file in sorted(changed.items())]
        stream = commit_stream(branch, message, parent, changes, at)
        with locked(self._lock) as held:
            for name in (f"refs/heads/{branch}.lock", "packed-refs.lock"):
                with suppress(FileNotFoundError):
                    (self.place / name).unlink()  # Of a git that was killed: this lock is held by nobody else.
            return _answered(git_in(self.place, "fast-import", "--quiet", "--force", given=stream, held=held))

    def forget(self, branch: str) -> None:
        with locked(self._lock) as held:
            git_in(self.place, "update-ref", "-d", f"refs/heads/{branch}", held=held)

    def tree_of(self, commit: str) -> str:
        return git_in(self.place, "rev-parse", "--verify", f"{commit}^{{tree}}").decode().strip()

    def entries(self, tree: str) -> dict[str, Entry]:
        """All files of a tree."""
        if tree not in self._entries:
            listing = git_in(self.place, "ls-tree", "-r", "-z", "-l", "--full-tree", tree)
            if len(self._entries) >= 64:
                self._entries.clear()
            self._entries[tree] = dict(_entry(line) for line in listing.split(b"\0") if line)
        return self._entries[tree]

    def contents(self, blobs: Sequence[str]) -> dict[str, bytes]:
        """The contents of blobs by their ids."""
        wanted = list(dict.fromkeys(blobs))
        answer = git_in(self.place, "cat-file", "--batch", given="".join(f"{blob}\n" for blob in wanted).encode())
        found: dict[str, bytes] = {}
        position = 0
        for blob in wanted:
            end = answer.index(b"\n", position)
            size = int(answer[position:end].rsplit(b" ", 1)[1])
            found[blob] = answer[end + 1 : end + 1 + size]
            position = end + size + 2
        return found

    def differences(self, before: str, after: str) -> list[FileDifference]:
        """The files that differ, by their paths."""
        listing = git_in(self.place, "diff-tree", "-r", "-z", "--numstat", "--no-renames", before, after)
        rows = [row.split(b"\t", 2) for row in listing.split(b"\0") if row]
        return [
            FileDifference(
                path=os.fsdecode(path),
                added=0 if added == b"-" else int(added),
                removed=0 if removed == b"-" else int(removed),
            )
            for added, removed, path in sorted(rows, key=lambda row: row[2])
        ]

    def patch(self, before: str, after: str) -> bytes:
        words = ("--binary", "--no-renames", "--no-color", "--no-ext-diff", "--no-textconv")
        return git_in(self.place, "diff-tree", "-r", "-p", *words, before, after)

    def tidy(self) -> None:
        """Pack what is in many small files, and drop what no branch has had for two weeks."""
        with locked(self._lock) as held:
            (self.place / "gc.pid").unlink(missing_ok=True)
            packing = ("-c", f"gc.auto={_LOOSE_OBJECTS}", "-c", "gc.autoDetach=false", "-c", "gc.reflogExpire=now")
            git_in(self.place, *packing, "gc", "--auto", "--quiet", held=held)


def commit_stream(branch: str, message: str, parent: str | None, changes: list[bytes], at: int) -> bytes:
    """For git's fast-import, which answers with the ids of the commit and of its tree.

    Args:
        parent: None: what the stream has put on the branch so far, if anything.
    """
    told = message.encode(errors="replace")
    head = f"commit refs/heads/{branch}\nmark :1\ncommitter nightlab <nightlab@localhost> {at} +0000\n".encode()
    begun = b"" if parent is None else f"from {parent}\n".encode()
    return b"".join([head, b"data %d\n" % len(told), told, b"\n", begun, *changes, b'\nget-mark :1\nls :1 ""\n'])


def change(path: str, file: BaseFile) -> bytes:
    return b"M %06o inline %s\ndata %d\n%s\n" % (file.mode, _quoted(path), len(file.content), file.content)


def removal(path: str) -> bytes:
    return b"D %s\n" % _quoted(path)


def _quoted(path: str) -> bytes:
    name = os.fsencode(path).replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"%s"' % name


def _answered(answer: bytes) -> tuple[str, str]:
    commit, tree = answer.decode().splitlines()[:2]
    return commit, tree.split()[2]


def _entry(line: bytes) -> tuple[str, Entry]:
    head, _, path = line.partition(b"\t")
    mode, _, blob, size = head.split()
    return os.fsdecode(path), Entry(mode=int(mode, 8), blob=blob.decode(), size_bytes=int(size))
