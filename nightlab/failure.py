"""What a command tells a person when it can not do its work. Imports nothing of ours; anyone here may import it.

Exit codes: 0 ok, 1 the work failed, 2 wrong use, 3 runtime unreachable, 4 bug, 5 a person has to answer first.
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    OK = 0
    WORK_FAILED = 1
    """The request was fine, what it asked for did not succeed."""
    WRONG_USE = 2
    """The caller must change the request."""
    UNREACHABLE = 3
    """The runtime is not up, or does not answer."""
    BUG = 4
    """Ours."""
    NEEDS_ANSWER = 5
    """It goes on once a person has agreed; nothing was done yet."""
    INTERRUPTED = 130
    """Ctrl-C, as shells count it."""


class Failure(Exception):
    """One or two sentences for a person, what to do included."""

    def __init__(
        self,
        message: str,
        *,
        exit_code: ExitCode,
        code: str,
        kind: str,
        path: str | None = None,
        is_retryable: bool = False,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.exit_code = exit_code
        self.code = code
        self.kind = kind
        """An `ErrorKind` of the wire, as text: this module must not import pydantic."""
        self.path = path
        self.is_retryable = is_retryable


def wrong_use(message: str, *, code: str, path: str | None = None) -> Failure:
    return Failure(message, exit_code=ExitCode.WRONG_USE, code=code, kind="invalid", path=path)


def work_failed(message: str, *, code: str, kind: str = "conflict") -> Failure:
    return Failure(message, exit_code=ExitCode.WORK_FAILED, code=code, kind=kind)


def unreachable(message: str, *, code: str = "not_running") -> Failure:
    return Failure(message, exit_code=ExitCode.UNREACHABLE, code=code, kind="unavailable", is_retryable=True)
