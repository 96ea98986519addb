"""Locks that all users of this machine share: who has a device, who has a port.

A lock is an empty file in a place where everybody may write, locked with flock(2): it is free again when its holder
dies, whatever the cause. Nothing is read from these files, so nobody can put lies there; who holds one is told by the
kernel. Standard library only: the supervisors import this.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat

from runtime.node import processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_PLACES = ("/run/lock", "/var/lock", "/tmp")
_STICKY_FOR_ALL = 0o1777
_TRIES = 8
_UNPLAIN = re.compile(r"[^A-Za-z0-9_.-]")


class Foreign(OSError):
    """Something stands in the place of a lock file that nobody of ours put there: a link, a pipe, a folder."""


def place() -> str:
    """The folder for locks: the same for every user and every process of this machine."""
    for path in _PLACES:
        try:
            found = os.lstat(path)
        except FileNotFoundError:
            continue
        is_for_all = found.st_mode & _STICKY_FOR_ALL == _STICKY_FOR_ALL
        if stat.S_ISDIR(found.st_mode) and found.st_uid == 0 and is_for_all:
            return path
    return "/tmp"


def path_of(name: str, folder: str | None = None) -> str:
    """Where the lock of that name is."""
    return os.path.join(folder or place(), f"nightlab-{_UNPLAIN.sub('_', name)}.lock")


def take(path: str, *, is_shared: bool = False) -> int | None:
    """Take the lock; the descriptor that holds it until it is closed. None: somebody else has it.

    Raises:
        Foreign: there is no plain file at that path.
        OSError: it can not be made.
    """
    kind = fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX
    for _ in range(_TRIES):
        descriptor = _open(path)
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        if is_at(descriptor, path):
            return descriptor
        os.close(descriptor)  # Somebody swept the folder between opening and locking.
    return None


def is_at(descriptor: int, path: str) -> bool:
    """Whether the file that is open is still the one at that path."""
    try:
        there = os.lstat(path)
    except FileNotFoundError:
        return False
    own = os.fstat(descriptor)
    return (own.st_dev, own.st_ino) == (there.st_dev, there.st_ino)


def holders(path: str) -> set[int]:
    """Pids of the processes that took this lock, as far as the kernel shows them; without our own."""
    try:
        found = os.lstat(path)
        with open("/proc/locks", encoding="ascii") as file:
            lines = file.read().splitlines()
    except OSError:
        return set()
    place_of_file = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    pids = set()
    for line in lines:
        words = line.split()
        if "->" not in words and len(words) >= 6 and words[1] == "FLOCK" and words[5] == place_of_file:
            pids.add(int(words[4]))
    return {pid for pid in pids if pid > 0 and pid != os.getpid()}


def holder(path: str) -> str:
    """Who has the lock, in words: `python3 (pid 4711, user bob)`."""
    return ", ".join(described(holders(path))) or "a process that is not shown here"


def described(pids: Iterable[int]) -> list[str]:
    return [processes.describe(pid) for pid in sorted(pids)]


def _open(path: str) -> int:
    """For reading alone, so that it can belong to anybody; made when it is not there."""
    for _ in range(_TRIES):
        try:
            return _plain(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK), path)
        except FileNotFoundError:
            pass
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENXIO):
                raise Foreign(errno.ELOOP, "no lock file of ours", path) from error
            raise
        try:
            # With O_EXCL: where anybody may write, the kernel may refuse to open a file of somebody else for creation.
            made = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o444)
        except FileExistsError:
            continue
        os.fchmod(made, 0o444)
        return made
    raise Foreign(errno.EAGAIN, "it comes and goes", path)


def _plain(descriptor: int, path: str) -> int:
    found = os.fstat(descriptor)
    if stat.S_ISREG(found.st_mode) and found.st_nlink == 1:
        return descriptor
    if stat.S_ISREG(found.st_mode) and found.st_nlink == 0:
        os.close(descriptor)
        raise FileNotFoundError(errno.ENOENT, "was removed", path)
    os.close(descriptor)
    raise Foreign(errno.ELOOP, "no lock file of ours", path)
