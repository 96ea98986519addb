"""The system calls of a sandbox that Python has no names for. Standard library only: the supervisors import this."""

from __future__ import annotations

import ctypes
import os

_PR_SET_NO_NEW_PRIVS = 38

_libc = ctypes.CDLL(None, use_errno=True)


def check(result: int, what: str) -> int:
    """The result of a call; a failed one raises OSError that says what failed."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def prctl(option: int, *arguments: int) -> int:
    """Raises OSError."""
    values = [*arguments, 0, 0, 0, 0][:4]
    return check(_libc.prctl(option, *(ctypes.c_ulong(value) for value in values)), f"prctl {option}")


def forbid_new_rights() -> None:
    """From here on, no program that is executed has more rights than this process. Raises OSError."""
    prctl(_PR_SET_NO_NEW_PRIVS, 1)
