"""The files of one attempt, and how they are written: whole or not at all.

Imported by the launcher and the supervisors: standard library only, and as little of it as will do.
"""

from __future__ import annotations

import errno
import json
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ORDER = "order.json"
"""What to run; holds secrets (0600). Written by the engine."""
SUPERVISOR = "supervisor.json"
"""Who supervises. Its creation is the claim: whoever creates it launches, nobody else ever does."""
STARTED = "started.json"
STOP = "stop.json"
"""The newest stop order. Written by the engine, may be replaced by a shorter one."""
EXIT = "exit.json"
"""The end, written once, after the whole process tree is gone."""
LOG = "out.log"
NOTICE = "preempt-notice"
"""NIGHTLAB_PREEMPT_FILE: exists once the attempt was asked to stop."""
HYPERPARAMETERS = "hyperparameters.yaml"
METRICS = "metrics.json"
"""How far the metric sources were read."""
PORT_VARIABLE = "MASTER_PORT"
"""Set by the supervisor, which holds the port until the command starts."""
TORCHRUN_PORT_VARIABLE = "PET_MASTER_PORT"
"""Where torchrun looks for its `--master-port`; without it, it takes 29500, as every other one on the machine."""

_RESERVED_BYTES = 1024
_MOST_BYTES = 64 * 1024 * 1024
"""Of a record; ours are smaller by far."""
_NUMBER = (int, float)
_FIELDS: dict[str, dict[str, Any]] = {
    SUPERVISOR: {"pid": int, "start_ticks": int, "boot_id": str, "marker": str},
    STARTED: {"pid": int, "start_ticks": int, "at": _NUMBER},
    METRICS: {"positions": list},
    EXIT: {"exit_code": (int, type(None)), "was_killed": bool, "ended_at": _NUMBER},
}
_VOID: dict[str, Any] = {"exit_reason": str, "evidence": str}
_LAUNCH_ERROR: dict[str, Any] = {"errno": (int, type(None)), "text": str}


def read(path: str) -> dict[str, Any] | None:
    """The record at `path`; None when there is none, or it is not whole, or nothing that we wrote."""
    try:
        with os.fdopen(open_plain(path), "rb") as file:
            record = json.loads(file.read(_MOST_BYTES))
        return record if isinstance(record, dict) and _is_sound(os.path.basename(path), record) else None
    except (FileNotFoundError, NotADirectoryError, PermissionError, ValueError, TypeError, RecursionError):
        return None


def open_plain(path: str, *, below: str | None = None, flags: int = os.O_RDONLY) -> int:
    """Open a file of the attempt; a descriptor.

    The job can reach these files. What it put in their place (a pipe, which would be waited for; a link, a folder)
    is not there: FileNotFoundError.

    Args:
        below: the folder that the file is in, at any depth. No folder on the way from there may be a link either, not
            even one that is put there meanwhile. None: the folder right above, which the job can not replace.
    """
    top = os.path.dirname(path) if below is None else below
    parts = os.path.relpath(path, top).split(os.sep)
    if ".." in parts:
        raise _nothing_plain(path)
    place = os.open(top or ".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts[:-1]:
            inner = os.open(part, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=place)
            os.close(place)
            place = inner
        descriptor = os.open(parts[-1], flags | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW, dir_fd=place)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.ENOTDIR):
            raise _nothing_plain(path) from error
        raise
    finally:
        os.close(place)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _nothing_plain(path)
    return descriptor


def _nothing_plain(path: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, "no plain file", path)


def _is_sound(name: str, record: dict[str, Any]) -> bool:
    """Whether a record has the fields that its readers count on."""
    if "void" in record:
        fields = _VOID
    elif "launch_error" in record:
        record, fields = {**record, **dict(record["launch_error"])}, _LAUNCH_ERROR
    else:
        fields = _FIELDS.get(name, {})
    return all(isinstance(record.get(field, ...), kinds) for field, kinds in fields.items())


def write(path: str, record: dict[str, Any], *, is_durable: bool = True) -> None:
    """Replace the record at `path`. Raises OSError; then the earlier record, if any, is still there."""
    _replace(path, json.dumps(record), is_durable=is_durable)
    if is_durable:
        sync_folder(os.path.dirname(path))


def write_text(path: str, text: str, *, owner: int | None = None) -> None:
    """Put a text at `path` in place of whatever is there, for its owner alone (None: us). Raises OSError."""
    _replace(path, text, is_durable=False, owner=owner)


def _replace(path: str, text: str, *, is_durable: bool, owner: int | None = None) -> None:
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        _write_new(temporary, text.encode(), is_durable=is_durable)
        if owner is not None:
            os.chown(temporary, owner, -1)
        os.rename(temporary, path)
    except OSError:
        remove(temporary)
        raise


def claim(path: str, record: dict[str, Any]) -> bool:
    """Create the record at `path`, unless there is one already: then False. Not yet durable: see `sync`."""
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        _write_new(temporary, json.dumps(record).encode(), is_durable=False)
        os.link(temporary, path)
    except FileExistsError:
        return False
    finally:
        remove(temporary)
    return True


def reserve(path: str) -> None:
    """Set space aside, so that this process's `write_reserved` to the path succeeds even on a full disk."""
    _write_new(_reserved(path), b" " * _RESERVED_BYTES, is_durable=False)


def write_reserved(path: str, record: dict[str, Any], *, is_durable: bool) -> None:
    """Write a record for which space was set aside."""
    body = json.dumps(record).encode()
    descriptor = os.open(_reserved(path), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.pwrite(descriptor, body + b" " * (_RESERVED_BYTES - len(body)), 0)
        if is_durable:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.rename(_reserved(path), path)
    if is_durable:
        sync_folder(os.path.dirname(path))


def release(path: str) -> None:
    """Give reserved space back."""
    remove(_reserved(path))


def _reserved(path: str) -> str:
    return f"{path}.{os.getpid()}.reserved"


def sync(path: str) -> None:
    """Make a file that exists durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(path: str) -> None:
    """Make the names in a folder durable."""
    sync(path)


def _write_new(path: str, body: bytes, *, is_durable: bool) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        written = 0
        while written < len(body):
            written += os.write(descriptor, body[written:])
        if is_durable:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove(path: str) -> None:
    """Remove a file, if it is there."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
