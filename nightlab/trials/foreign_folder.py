"""A folder from elsewhere: read only when every file in it is listed with its sum, and nothing leads out of it."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from pathlib import Path, PurePosixPath

from pydantic import ValidationError

from .evidence import SUMS, TRIAL, Evidence

_LINE = re.compile(r"([0-9a-f]{64})  (.+)")
_LARGEST_LIST = 16 * 1024 * 1024


class Refused(Exception):
    """The folder is not what it says it is; the message names the file."""


def read_evidence(folder: Path) -> Evidence:
    """The evidence in a folder that is whole.

    Raises:
        Refused: a file was changed, added or removed, leads out of the folder, or is not what it should be.
    """
    check_sums(folder)
    try:
        return Evidence.model_validate_json((folder / TRIAL).read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise Refused(f"{TRIAL}: {where}: {first['msg']}; it is of another version, or no evidence folder") from error


def check_sums(folder: Path) -> None:
    """
    Raises:
        Refused: as `read_evidence`.
    """
    if not folder.is_dir():
        raise Refused(f"{folder} is no folder; give one that `nightlab trial export` wrote")
    present = _files(folder)
    if SUMS not in present:
        raise Refused(f"{folder} has no {SUMS}: it is no evidence folder")
    listed = _listed(folder / SUMS)
    for name in sorted(listed.keys() - present):
        raise Refused(f"{name} is listed in {SUMS} and missing")
    for name in sorted(present - listed.keys() - {SUMS}):
        raise Refused(f"{name} is not listed in {SUMS}: it was added afterwards")
    for name, digest in sorted(listed.items()):
        if _digest(folder / name) != digest:
            raise Refused(f"{name} was changed: its sum is not that in {SUMS}")
    if TRIAL not in listed:
        raise Refused(f"{TRIAL} is not listed in {SUMS}: it is no evidence folder")


def _files(folder: Path) -> set[str]:
    """Relative paths of all files; anything else than a file or a folder is refused."""
    found: set[str] = set()
    waiting = [folder]
    while waiting:
        place = waiting.pop()
        for entry in os.scandir(place):
            name = Path(entry.path).relative_to(folder).as_posix()
            mode = entry.stat(follow_symlinks=False).st_mode
            if stat.S_ISLNK(mode):
                raise Refused(f"{name} is a symbolic link: it could lead out of the folder")
            if stat.S_ISDIR(mode):
                waiting.append(Path(entry.path))
            elif stat.S_ISREG(mode):
                found.add(name)
            else:
                raise Refused(f"{name} is neither a file nor a folder")
    return found


def _listed(sums: Path) -> dict[str, str]:
    if sums.stat().st_size > _LARGEST_LIST:
        raise Refused(f"{SUMS} is larger than {_LARGEST_LIST // 1024 // 1024} MB")
    found: dict[str, str] = {}
    try:
        lines = sums.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise Refused(f"{SUMS} is no text") from error
    for number, line in enumerate(lines, 1):
        match = _LINE.fullmatch(line)
        if match is None:
            raise Refused(f"{SUMS}: line {number} is not of the form `<sha256>  <path>`")
        digest, name = match.groups()
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or path.as_posix() != name:
            raise Refused(f"{SUMS}: line {number} names {name!r}, which leads out of the folder")
        if name in found:
            raise Refused(f"{SUMS}: {name} is listed twice")
        found[name] = digest
    return found


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
