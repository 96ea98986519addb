"""Where the local sockets of a home folder are: in it, or elsewhere when its path is too long for a socket.

The kernel takes 107 bytes for a Unix socket's path (unix(7)).
"""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

_LONGEST_PATH = 107
_LONGEST_NAME = len("/w0123456789abcdef.sock.lock")
_ELSEWHERE = "sockets-are-in"


def socket_folder(home: Path) -> Path:
    """The folder (mode 0700) for the sockets of this home. Made when it is missing; the same one every time.

    Raises OSError.
    """
    run = home / "run"
    run.mkdir(parents=True, exist_ok=True)
    run.chmod(0o700)
    if len(os.fsencode(run)) + _LONGEST_NAME <= _LONGEST_PATH:
        return run
    pointer = run / _ELSEWHERE
    try:
        recorded = Path(pointer.read_text())
    except FileNotFoundError:
        recorded = None
    if recorded is not None and _is_private(recorded):
        return recorded
    made = Path(tempfile.mkdtemp(prefix="nightlab-", dir="/tmp"))
    temporary = pointer.with_suffix(f".{os.getpid()}.tmp")
    temporary.write_text(str(made))
    temporary.rename(pointer)
    return made


def _is_private(folder: Path) -> bool:
    try:
        found = folder.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077
