"""One snapshot on disk: `<id>.tar`, which any tar reads, and `<id>.json`, which says where in it each file is.

The id is the hash of the list and of every file's content. Both files are written once, whole, and never changed.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import stat
import tarfile
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .tree import CodeTree, SnapshotRefused

VERSION = 1
_LARGEST_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    path: str
    mode: int
    """0o644, 0o755."""
    size_bytes: int
    offset: int
    """Of its content in the archive."""
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What is in an archive; paths are relative to the folder that it was taken of."""

    snapshot_id: str
    root: str
    files: tuple[Member, ...]
    symlinks: tuple[tuple[str, str], ...]
    """(path, target)"""
    folders: tuple[str, ...]
    linked: tuple[str, ...]
    """Ignored by git: linked to where they are instead of copied."""


class SnapshotMissing(Exception):
    """The snapshot is not where it should be, or is not whole. The message says what to do."""


def write(store: Path, root: Path, tree: CodeTree) -> Manifest:
    """Archive the tree, unless the store has the same already. Raises SnapshotRefused, OSError (a full disk)."""
    # In memory, since the name of the archive depends on all of it; the size limit of snapshots is checked before.
    body = io.BytesIO()
    files, symlinks = [], []
    with tarfile.open(fileobj=body, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(tree.files):
            if stat.S_ISLNK(tree.files[path][4]):
                target = _target(str(root), path)
                archive.addfile(_header(path, 0o777, target=target))
                symlinks.append((path, target))
            else:
                files.append(_add(archive, body, root, path))
    listed = {
        "version": VERSION,
        "root": str(root),
        "files": [[f.path, f.mode, f.size_bytes, f.offset, f.sha256] for f in files],
        "symlinks": symlinks,
        "folders": sorted(tree.folders),
        "linked": sorted(tree.linked),
    }
    text = json.dumps(listed, separators=(",", ":"))
    snapshot_id = hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()
    if not (store / f"{snapshot_id}.json").exists():
        put(store / f"{snapshot_id}.tar", body.getbuffer())
        put(store / f"{snapshot_id}.json", text.encode())  # Last: who finds the list finds the archive.
    return _manifest(snapshot_id, listed)


def read(store: Path, snapshot_id: str) -> Manifest:
    """Raises SnapshotMissing."""
    try:
        return _manifest(snapshot_id, json.loads((store / f"{snapshot_id}.json").read_bytes()))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _missing(store, snapshot_id) from error


def unpack(store: Path, snapshot_id: str, folder: Path) -> None:
    """Make `folder` a copy of the code, if it is not there yet. It appears whole.

    Raises:
        SnapshotMissing: the snapshot was removed or is damaged.
        OSError: no space, no permission.
    """
    if folder.exists():
        return
    manifest = read(store, snapshot_id)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f"{folder.name}.") as place:
        made = Path(place, folder.name)
        made.mkdir(mode=0o700)
        for name in manifest.folders:
            Path(made, name).mkdir(exist_ok=True, parents=True)
        try:
            archive = os.open(store / f"{snapshot_id}.tar", os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError as error:
            raise _missing(store, snapshot_id) from error
        try:
            _copy_all(archive, manifest, str(made))
        except EOFError as error:
            raise _missing(store, snapshot_id) from error
        finally:
            os.close(archive)
        for path, target in manifest.symlinks:
            os.symlink(target, made / path)
        for path in manifest.linked:
            os.symlink(os.path.join(manifest.root, path), made / path)
        # Another attempt's unpacking may have been first: then that one stands.
        with contextlib.suppress(FileExistsError, IsADirectoryError):
            made.rename(folder)


def _copy_all(archive: int, manifest: Manifest, made: str) -> None:
    for member in manifest.files:
        copy = os.open(f"{made}/{member.path}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, member.mode)
        try:
            position, left = member.offset, member.size_bytes
            while left > 0:
                done = os.sendfile(copy, archive, position, left)
                if done == 0:
                    raise EOFError(member.path)
                position, left = position + done, left - done
        finally:
            os.close(copy)


def _add(archive: tarfile.TarFile, body: io.BytesIO, root: Path, path: str) -> Member:
    try:
        with open(root / path, "rb") as file:
            mode = 0o755 if os.fstat(file.fileno()).st_mode & stat.S_IXUSR else 0o644
            content = file.read()
    except OSError as error:
        raise SnapshotRefused(
            f"the code in {root} can not be read: {path}: {error.strerror}; make it readable, have git ignore it, "
            "or submit with code_source.snapshot: off"
        ) from error
    header = _header(path, mode, size=len(content))
    archive.addfile(header, io.BytesIO(content))
    padded = -(-len(content) // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE
    return Member(
        path=path,
        mode=mode,
        size_bytes=len(content),
        offset=body.tell() - padded,
        sha256=hashlib.sha256(content).hexdigest(),
    )


def _header(path: str, mode: int, *, size: int = 0, target: str = "") -> tarfile.TarInfo:
    """Without times and owners: the same content gives the same bytes."""
    header = tarfile.TarInfo(path)
    header.mode, header.size = mode, size
    if target:
        header.type, header.linkname = tarfile.SYMTYPE, target
    return header


def _target(root: str, path: str) -> str:
    """Where a link points; one that leaves the tree by a relative way is made absolute, since its place changes."""
    target = os.readlink(os.path.join(root, path))
    inside = os.path.normpath(os.path.join(os.path.dirname(path), target))
    if os.path.isabs(target) or not inside.startswith(".."):
        return target
    return os.path.normpath(os.path.join(root, os.path.dirname(path), target))


def _manifest(snapshot_id: str, listed: dict[str, Any]) -> Manifest:
    if listed["version"] != VERSION:
        raise ValueError(f"a list of version {listed['version']}")
    members: Iterable[tuple[str, int, int, int, str]] = listed["files"]
    return Manifest(
        snapshot_id=snapshot_id,
        root=listed["root"],
        files=tuple(
            Member(path=path, mode=mode, size_bytes=size, offset=offset, sha256=sha256)
            for path, mode, size, offset, sha256 in members
        ),
        symlinks=tuple((path, target) for path, target in listed["symlinks"]),
        folders=tuple(listed["folders"]),
        linked=tuple(listed["linked"]),
    )


def put(path: Path, content: bytes | memoryview) -> None:
    """Write a file whole and durable, or not at all."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.rename(temporary, path)
    except OSError:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def _missing(store: Path, snapshot_id: str) -> SnapshotMissing:
    return SnapshotMissing(
        f"the code snapshot {snapshot_id[:12]} is not (or not whole) in {store}: it was removed there. "
        "Submit the job again, or with code_source.snapshot: off"
    )


def too_large(root: Path, tree: CodeTree, limit_mb: int) -> SnapshotRefused:
    """What to say about a folder that is over the limit: how large, and what makes it so."""
    largest = sorted(tree.files, key=lambda path: tree.files[path][0], reverse=True)[:_LARGEST_SHOWN]
    shown = ", ".join(f"{path} ({tree.files[path][0] / 1e6:.1f} MB)" for path in largest)
    return SnapshotRefused(
        f"the code in {root} is {tree.size_bytes / 1e6:.0f} MB in {len(tree.files)} files, and the limit is "
        f"{limit_mb} MB. The largest: {shown}. Have .gitignore name what is data (jobs find it by links), raise "
        "code_source.snapshot_limit_mb, or submit with code_source.snapshot: off"
    )
