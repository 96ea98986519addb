"""The output of an attempt on disk: kept within bounds while it is written, read in pieces, and told apart by rank.

The command writes straight into files, so that its output needs nobody to survive. A file that grows beyond its bound
keeps its head and its tail; the middle is given back to the disk as a hole. Offsets stay what they were, and the hole
itself tells readers how much was cut. Standard library only.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import re
from typing import NamedTuple

from runtime.node import records
from runtime.sandbox import folders

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

RANKS = "ranks"
"""NIGHTLAB_RANK_LOG_DIR, below the attempt's folder."""
MAIN = "main"
"""The stream of the leader."""
CAP_BYTES = 256 * 1024 * 1024
"""Of each file, where nothing else is said."""
LEAST_CAP_BYTES = 1024 * 1024
MOST_FILES = 1024
"""Files of ranks that are looked at."""
_BLOCK = 4096
_TORN_LINE_BYTES = 64 * 1024
_SOONEST_S = 0.05
_FALLOCATE = 1 | 2
"""FALLOC_FL_KEEP_SIZE and FALLOC_FL_PUNCH_HOLE (linux/falloc.h)."""
_OWN_NAME = re.compile(r"rank[_-]?(\d+)(?:\.(out|err))?\.(?:log|txt)")
_TORCHRUN = re.compile(r"attempt_(\d+)/(\d+)/(stdout|stderr)\.log")

_libc = ctypes.CDLL(None, use_errno=True)


class Piece(NamedTuple):
    """Part of a file."""

    start: int
    """Where it begins: later than asked for, when that was cut out."""
    content: bytes
    size: int
    """Of the file, with all that was cut out."""
    n_cut: int
    """Bytes that were cut out right before it."""


class Keeper:
    """Keeps the files of one attempt within `cap_bytes` each, at whatever speed they grow."""

    def __init__(self, folder: str, cap_bytes: int) -> None:
        self._folder = folder
        self._cap = max(cap_bytes, LEAST_CAP_BYTES)
        self._sizes: dict[str, int] = {}
        self._wait_s = _SOONEST_S

    def look(self, passed_s: float, most_s: float) -> float:
        """Trim what is too large; `passed_s` since the last look. Returns in how many seconds to look again, at most.

        Soon after the start and while much is written, later when not: nothing gains a quarter of the bound in between.
        """
        n_new = 0
        for path in _files(self._folder):
            size = trim(path, self._cap, folder=self._folder)
            n_new = max(n_new, size - self._sizes.get(path, 0))
            self._sizes[path] = size
        fastest_s = most_s if n_new <= 0 else self._cap / 4 / (n_new / max(passed_s, 1e-3))
        self._wait_s = min(most_s, 2 * self._wait_s, max(_SOONEST_S, fastest_s))
        return self._wait_s


def trim(path: str, cap_bytes: int, *, folder: str | None = None) -> int:
    """Cut the middle out of a file that holds more than the bound. Returns its size, with all that was cut.

    `folder` is the attempt's: a link on the way from there, which the job may have put, is not followed.
    """
    try:
        descriptor = records.open_plain(path, below=folder, flags=os.O_RDWR)
    except OSError:
        return 0
    try:
        found = os.fstat(descriptor)
        if found.st_blocks * 512 > cap_bytes:
            _cut(descriptor, found.st_size, cap_bytes // 4)
        return found.st_size
    except OSError:
        return 0
    finally:
        os.close(descriptor)


def _cut(descriptor: int, size: int, kept: int) -> None:
    begin = -(-kept // _BLOCK) * _BLOCK
    end = (size - kept) // _BLOCK * _BLOCK
    if end <= begin:
        return
    done = _libc.fallocate(descriptor, ctypes.c_int(_FALLOCATE), ctypes.c_int64(begin), ctypes.c_int64(end - begin))
    if done != 0 and ctypes.get_errno() in (errno.EOPNOTSUPP, errno.ENOSYS):
        # Without holes only the head can be kept; what comes next is appended to it.
        os.ftruncate(descriptor, begin)
        os.lseek(descriptor, 0, os.SEEK_END)
        os.write(descriptor, b"\nnightlab: %d bytes of output were cut here\n" % (size - begin))


def read_piece(path: str, offset: int, limit: int, *, folder: str | None = None) -> Piece:
    """Bytes from `offset`, or from behind the hole that it is in. FileNotFoundError when there is no such file.

    `folder` is the attempt's: a link on the way from there, which the job may have put, is not followed.
    """
    with os.fdopen(records.open_plain(path, below=folder), "rb", buffering=0) as file:
        descriptor = file.fileno()
        size = os.fstat(descriptor).st_size
        offset = min(max(0, offset), size)
        start = data_from(descriptor, offset, size)
        n_cut = start - offset
        if n_cut:
            torn = os.pread(descriptor, min(_TORN_LINE_BYTES, size - start), start)
            start += torn.find(b"\n") + 1
        length = min(max(0, limit), _hole_from(descriptor, start, size) - start)
        return Piece(start, os.pread(descriptor, length, start), size, n_cut)


def data_from(descriptor: int, offset: int, size: int) -> int:
    """Where the next bytes that were not cut begin."""
    if offset >= size:
        return offset
    try:
        return os.lseek(descriptor, offset, os.SEEK_DATA)
    except OSError as error:
        return size if error.errno == errno.ENXIO else offset


def _hole_from(descriptor: int, offset: int, size: int) -> int:
    if offset >= size:
        return offset
    try:
        return min(size, os.lseek(descriptor, offset, os.SEEK_HOLE))
    except OSError:
        return size


def written(folder: str) -> int:
    """A number that changes whenever output is written."""
    total = 0
    for path in _files(folder):
        try:
            found = os.stat(path, follow_symlinks=False)
        except OSError:
            continue
        total += found.st_size + found.st_mtime_ns
    return total


def streams(folder: str) -> dict[str, str]:
    """The streams of an attempt by name, with their files: `main`, `0`, `0.err`, `1`, ..."""
    found = {MAIN: os.path.join(folder, records.LOG)}
    newest: dict[str, int] = {}
    for path in _rank_files(folder):
        own, torchrun = _OWN_NAME.fullmatch(os.path.basename(path)), _TORCHRUN.search(path)
        if own is not None:
            found[_name(own[1], own[2] == "err")] = path
        elif torchrun is not None:
            name = _name(torchrun[2], torchrun[3] == "stderr")
            if int(torchrun[1]) >= newest.get(name, 0):  # of the newest restart
                newest[name] = int(torchrun[1])
                found[name] = path
    return found


def rank_of(stream: str) -> int | None:
    """The rank whose stream it is; None: the leader's."""
    number = stream.partition(".")[0]
    return int(number) if number.isdigit() else None


def _name(rank: str, is_error: bool) -> str:
    return f"{int(rank)}.err" if is_error else f"{int(rank)}"


def _files(folder: str) -> Iterator[str]:
    yield os.path.join(folder, records.LOG)
    yield from _rank_files(folder)


def _rank_files(folder: str) -> Iterator[str]:
    n_left = MOST_FILES
    top = os.path.join(folder, RANKS)
    if os.path.islink(top):
        return
    with contextlib.suppress(folders.TooDeep):
        for place, names in folders.walk(top):
            for name in sorted(names):
                if n_left == 0:
                    return
                n_left -= 1
                yield os.path.join(place, name)
