"""Fingerprints of what a task reads: whether two trials saw the same data. A shell over files; decides nothing.

A fingerprint has one word for each source, in the order of the task: `manifest:...`, `sha256:...`, `label:...`, or `?`
for one that can not be read. Entries are hashed one by one and their hashes added up, so that a tree of any size is
read in one pass, in any order, without being held in memory.

Source: adding hashes modulo a power of two as a hash of a multiset, M. Bellare and D. Micciancio, "A new paradigm for
collision-free hashing: incrementality at reduced cost", EUROCRYPT 1997 (AdHASH). It guards against accidents, not
against somebody who wants two trees to look alike.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from agent.planner.comparable import UNREADABLE
from agent.task import DataSource

CHEAP_S = 0.02
"""A walk that takes less is made at every wake-up that needs one."""
WALK_EVERY_S = 60.0
SHARE = 0.02
"""Dearer walks take at most this share of the time, and come once in `WALK_EVERY_S` at most."""
_N_NAMED = 3
_BLOCK = 1 << 20
_MODULUS = 1 << 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What the data is."""

    text: str | None
    """The fingerprint; None: the task names no data."""
    is_fresh: bool
    """Read just now; else it is of an earlier look."""
    problems: tuple[str, ...] = ()
    """What could not be read, in words."""


@dataclass(slots=True)
class DataFingerprints:
    """The fingerprint of a task's data, read anew as often as it is cheap, and at least once a minute when asked."""

    sources: Sequence[DataSource] = ()
    monotonic: Callable[[], float] = time.monotonic
    _last: Look | None = None
    _cost_s: float = 0.0
    _at_s: float = 0.0
    _digests: dict[tuple[int, int, int, int], bytes] = field(default_factory=dict)
    """Of the bytes of files, by device, inode, size and time of change."""

    def look(self, *, must_be_fresh: bool = False) -> Look:
        """The fingerprint now, or where a look is dear and was made a short while ago, that one."""
        if not self.sources:
            return Look(text=None, is_fresh=True)
        began = self.monotonic()
        if self._last is not None and not must_be_fresh and not self._is_due(began):
            return Look(text=self._last.text, is_fresh=False, problems=self._last.problems)
        problems: list[str] = []
        text = " ".join(_word(source, self._digests, problems) for source in self.sources)
        self._at_s = self.monotonic()
        self._cost_s = self._at_s - began
        self._last = Look(text=text, is_fresh=True, problems=_shortened(problems))
        return self._last

    def _is_due(self, now_s: float) -> bool:
        if self._cost_s <= CHEAP_S:
            return True
        return now_s - self._at_s >= max(WALK_EVERY_S, self._cost_s / SHARE)


def _word(source: DataSource, digests: dict[tuple[int, int, int, int], bytes], problems: list[str]) -> str:
    if source.fingerprint == "label":
        return f"label:{quote(source.label or '', safe='')}"
    total = 0
    try:
        for entry in _entries(Path(source.path), problems):
            content = _content(entry, digests, problems) if source.fingerprint == "sha256" else entry.times
            total = (total + int.from_bytes(hashlib.sha256(entry.name + b"\0" + content).digest())) % _MODULUS
    except OSError as error:
        problems.append(f"{source.path}: {error.strerror or error}")
        return UNREADABLE
    return f"{source.fingerprint}:{total.to_bytes(32).hex()[:24]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    name: bytes
    """Path below the source and kind; of a link also where it leads."""
    path: str
    found: os.stat_result | None
    """Of what the name leads to; None: nothing, or it can not be read."""

    @property
    def is_file(self) -> bool:
        return self.found is not None and stat.S_ISREG(self.found.st_mode)

    @property
    def times(self) -> bytes:
        return b"%d %d" % (self.found.st_size, self.found.st_mtime_ns) if self.found and self.is_file else b""


def _entries(root: Path, problems: list[str]) -> Iterator[_Entry]:
    """Every file and folder below, links followed, but for those that lead back up; the root itself when it is a file.

    Raises OSError: the root can not be read.
    """
    found = root.stat()
    if not stat.S_ISDIR(found.st_mode):
        yield _Entry(name=b".", path=str(root), found=found)
        return
    os.scandir(root).close()
    waiting = [(str(root), b"", frozenset({(found.st_dev, found.st_ino)}))]
    while waiting:
        folder, prefix, above = waiting.pop()
        try:
            with os.scandir(folder) as listing:
                for item in listing:
                    entry = _entry(item, prefix, problems)
                    yield entry
                    if entry.found is not None and stat.S_ISDIR(entry.found.st_mode):
                        key = entry.found.st_dev, entry.found.st_ino
                        if key not in above:
                            waiting.append((item.path, prefix + os.fsencode(item.name) + b"/", above | {key}))
        except OSError as error:
            problems.append(f"{folder}: {error.strerror or error}")
            yield _Entry(name=prefix + b"?", path=folder, found=None)


def _entry(item: os.DirEntry[str], prefix: bytes, problems: list[str]) -> _Entry:
    name = prefix + os.fsencode(item.name)
    path = item.path
    try:
        if item.is_symlink():
            name += b"\0-> " + os.fsencode(os.readlink(path))
        found = item.stat()
    except OSError as error:
        problems.append(f"{path}: {error.strerror or error}")
        return _Entry(name=name + b"\0?", path=path, found=None)
    return _Entry(name=name + (b"\0d" if stat.S_ISDIR(found.st_mode) else b"\0f"), path=path, found=found)


def _content(entry: _Entry, digests: dict[tuple[int, int, int, int], bytes], problems: list[str]) -> bytes:
    """Digest of a file's bytes, read once for each time of change."""
    if entry.found is None or not entry.is_file:
        return b""
    key = entry.found.st_dev, entry.found.st_ino, entry.found.st_size, entry.found.st_mtime_ns
    if key not in digests:
        try:
            with open(entry.path, "rb", buffering=0) as file:
                whole = hashlib.sha256()
                while block := file.read(_BLOCK):
                    whole.update(block)
        except OSError as error:
            problems.append(f"{entry.path}: {error.strerror or error}")
            return b"?"
        digests[key] = whole.digest()
    return digests[key]


def _shortened(problems: list[str]) -> tuple[str, ...]:
    more = len(problems) - _N_NAMED
    return (*problems[:_N_NAMED], f"and {more} more") if more > 0 else tuple(problems)
