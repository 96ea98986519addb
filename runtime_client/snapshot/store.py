"""Take snapshots into a folder of archives, quickly where nothing has changed since the last one.

An index per code folder holds what the file system said about every file at the last snapshot. When it says the same
again, that snapshot is the present one, and neither git nor any file's content is read.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from . import archive, git
from .tree import Seen, SnapshotRefused, look, walk

INDEX_VERSION = 1
DEFAULT_LIMIT_MB = 64
_JUST_NOW_NS = 50_000_000
"""The clock of file times is coarse: what was changed this shortly before could change again unseen."""
MOST_FILES = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    snapshot_id: str
    n_files: int
    size_bytes: int
    commit: git.Commit | None
    """None: the folder is in no git work tree."""


@dataclass(slots=True, kw_only=True)
class _Index:
    snapshot: Snapshot
    files: dict[str, Seen]
    folders: dict[str, Seen]
    watched: dict[str, Seen | None]

    def is_present(self, root: str) -> bool:
        """Whether everything looks as it did. One `lstat` a file."""
        lstat, prefix = os.lstat, root + "/"
        try:
            for names in (self.folders, self.files):
                for name, seen in names.items():
                    now = lstat(prefix + name)
                    if (now.st_mtime_ns, now.st_ctime_ns, now.st_size, now.st_ino) != (seen[1], seen[2], *seen[::3]):
                        return False
        except OSError:
            return False
        return all(look(path) == seen for path, seen in self.watched.items())


class CodeStore:
    """Archives and indexes in one folder. Several processes may use it at once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._indexes: dict[str, _Index] = {}

    def take(self, root: Path, *, limit_mb: int = DEFAULT_LIMIT_MB, without: tuple[str, ...] = ()) -> Snapshot:
        """The snapshot of the folder as it is now.

        Args:
            without: files and folders in it that are no part of the snapshot, relative to it.

        Raises:
            SnapshotRefused: it is no folder, too large, or not readable; or the archive can not be written.
        """
        name = _name(root, without)
        index = self._indexes.get(name) or self._load(name)
        if index is None or not self._has(index.snapshot) or not index.is_present(str(root)):
            index = self._take_anew(root, limit_mb, without)
        self._indexes[name] = index
        return index.snapshot

    def _left_out(self, root: Path, without: tuple[str, ...]) -> frozenset[str]:
        """The home that these archives are in, where it lies below the code: it grows with every job."""
        folder, top = self.folder.resolve(), root.resolve()
        below = [place for place in (folder.parent, folder) if top in place.parents]
        return frozenset(str(place) for place in (*below, *((root / path).resolve() for path in without)))

    def _take_anew(self, root: Path, limit_mb: int, without: tuple[str, ...]) -> _Index:
        if not root.is_dir():
            raise SnapshotRefused(f"code_source.root_path {str(root)!r} is not a folder; give the folder with the code")
        began_ns = time.time_ns()
        tree = walk(root, left_out=self._left_out(root, without))
        if tree.size_bytes > limit_mb * 1_000_000:
            raise archive.too_large(root, tree, limit_mb)
        if len(tree.files) > MOST_FILES:
            raise SnapshotRefused(
                f"the code in {root} is {len(tree.files)} files, and the limit is {MOST_FILES}: have .gitignore name "
                "what is data (jobs find it by links), or submit with code_source.snapshot: off"
            )
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            manifest = archive.write(self.folder, root, tree)
            snapshot = Snapshot(
                snapshot_id=manifest.snapshot_id,
                n_files=len(tree.files),
                size_bytes=tree.size_bytes,
                commit=tree.commit,
            )
            self._keep_difference(root, snapshot)
            index = _Index(snapshot=snapshot, files=tree.files, folders=tree.folders, watched=tree.watched)
            self._save(_name(root, without), index, before_ns=began_ns - _JUST_NOW_NS)
        except OSError as error:
            raise SnapshotRefused(
                f"the snapshot of {root} can not be kept in {self.folder}: {error.strerror}; free some space there, "
                "or submit with code_source.snapshot: off"
            ) from error
        return index

    def _keep_difference(self, root: Path, snapshot: Snapshot) -> None:
        """The uncommitted changes as a patch beside the archive, for people: the archive has the files themselves."""
        commit = snapshot.commit
        if commit is None or commit.commit is None or not commit.is_dirty:
            return
        path = self.folder / f"{snapshot.snapshot_id}.{commit.commit[:12]}.diff"
        if not path.exists():
            archive.put(path, git.difference(root))

    def _has(self, snapshot: Snapshot) -> bool:
        return os.path.exists(self.folder / f"{snapshot.snapshot_id}.json")

    def _index_path(self, name: str) -> Path:
        digest = hashlib.sha256(os.fsencode(name)).hexdigest()[:32]
        return self.folder / f"{digest}.index"

    def _load(self, name: str) -> _Index | None:
        try:
            found = json.loads(self._index_path(name).read_bytes())
            if found["version"] != INDEX_VERSION or found["root"] != name:
                return None
            commit = found["snapshot"].pop("commit")
            return _Index(
                snapshot=Snapshot(**found["snapshot"], commit=None if commit is None else git.Commit(**commit)),
                files=_seen_by_path(found["files"]),
                folders=_seen_by_path(found["folders"]),
                watched={path: None if seen is None else _seen(seen) for path, seen in found["watched"].items()},
            )
        except (OSError, ValueError, KeyError, TypeError):
            return None  # None yet, or of another release: it is made again.

    def _save(self, name: str, index: _Index, *, before_ns: int) -> None:
        """Keep it, with what changed just now marked as not to be trusted."""
        for names in (index.files, index.folders):
            for path, seen in names.items():
                if max(seen[1], seen[2]) >= before_ns:
                    names[path] = (-1, *seen[1:])
        body: dict[str, Any] = {"version": INDEX_VERSION, "root": name, **asdict(index)}
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor, temporary = tempfile.mkstemp(dir=self.folder, prefix=".", suffix=".tmp")
        try:
            with os.fdopen(descriptor, "w") as file:
                json.dump(body, file, separators=(",", ":"))
            os.rename(temporary, self._index_path(name))
        except OSError:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
            raise


def _name(root: Path, without: tuple[str, ...]) -> str:
    """Of an index: the folder, and what of it is left out."""
    return "\0".join((str(root), *without))


def _seen(found: list[int]) -> Seen:
    size, mtime, ctime, inode, mode = found
    return size, mtime, ctime, inode, mode


def _seen_by_path(found: dict[str, list[int]]) -> dict[str, Seen]:
    return {path: _seen(seen) for path, seen in found.items()}


__all__ = ["DEFAULT_LIMIT_MB", "CodeStore", "Snapshot"]
