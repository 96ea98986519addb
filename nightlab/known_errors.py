"""Exceptions of our other packages as failures of a command. One table; what is not in it is a bug of ours."""

from __future__ import annotations

import os
import tempfile
import traceback

from agent.store.faults import StoreUnusable, is_disk_full
from runtime_client.errors import (
    Conflict,
    Forbidden,
    InvalidSpec,
    NotFound,
    OverBudget,
    RuntimeClientError,
    ServerFault,
    TimedOut,
    Unreachable,
)

from .failure import ExitCode, Failure

CLIENT_TABLE: tuple[tuple[type[RuntimeClientError], ExitCode, str], ...] = (
    (Unreachable, ExitCode.UNREACHABLE, "unavailable"),
    (TimedOut, ExitCode.UNREACHABLE, "unavailable"),
    (InvalidSpec, ExitCode.WRONG_USE, "invalid"),
    (NotFound, ExitCode.WRONG_USE, "not_found"),
    (Forbidden, ExitCode.WRONG_USE, "forbidden"),
    (Conflict, ExitCode.WORK_FAILED, "conflict"),
    (OverBudget, ExitCode.WORK_FAILED, "over_budget"),
)


def failure_of(error: Exception) -> Failure:
    """What to tell the person about `error`, and the exit code."""
    if isinstance(error, RuntimeClientError):
        return _of_client(error)
    if is_disk_full(error):
        return Failure(
            f"no space is left on the disk ({_named(error)}): free some, then do this again; nothing was changed.",
            exit_code=ExitCode.WORK_FAILED,
            code="disk_full",
            kind="unavailable",
            is_retryable=True,
        )
    if isinstance(error, StoreUnusable):
        return Failure(str(error), exit_code=ExitCode.WORK_FAILED, code="store_unusable", kind="unavailable")
    if isinstance(error, OSError) and error.filename is not None:
        return Failure(
            f"{error.filename}: {error.strerror}",
            exit_code=ExitCode.WORK_FAILED,
            code="file_error",
            kind="invalid",
        )
    return _bug(error)


def _of_client(error: RuntimeClientError) -> Failure:
    for type_, exit_code, kind in CLIENT_TABLE:
        if isinstance(error, type_):
            return _failure(error, exit_code, kind)
    if isinstance(error, ServerFault) and error.retryable:
        return _failure(error, ExitCode.UNREACHABLE, "unavailable")
    return _failure(error, ExitCode.BUG, "fault")


def _failure(error: RuntimeClientError, exit_code: ExitCode, kind: str) -> Failure:
    where = f"{error.path}: " if error.path and error.path not in error.message else ""
    return Failure(
        f"{where}{error.message}",
        exit_code=exit_code,
        code=error.code,
        kind=kind,
        path=error.path,
        is_retryable=error.retryable,
    )


def _named(error: Exception) -> str:
    return str(getattr(error, "filename", None) or getattr(error, "orig", None) or error)


def _bug(error: Exception) -> Failure:
    try:
        handle, with_what = tempfile.mkstemp(prefix="nightlab-bug-", suffix=".log")
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as log:
            log.write("".join(traceback.format_exception(error)))
    except OSError:
        with_what = "what --debug prints"
    return Failure(
        f"a bug of nightlab: {type(error).__name__}: {error}. Please report it with {with_what}",
        exit_code=ExitCode.BUG,
        code="bug",
        kind="fault",
    )
