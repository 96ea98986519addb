"""The files of one attempt, and how they are written: whole or not at all.

Imported by the launcher and the supervisors: standard library only, and as little of it as will do.
"""

from __future__ import annotations

import json
import os

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

_RESERVED_BYTES = 1024


def read(path: str) -> dict[str, Any] | None:
    """The record at `path`; None when there is none or it is not whole."""
    try:
        with open(path, "rb") as file:
            record = json.loads(file.read())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return record if isinstance(record, dict) else None


def write(path: str, record: dict[str, Any], *, is_durable: bool = True) -> None:
    """Replace the record at `path`. Raises OSError; then the earlier record, if any, is still there."""
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        _write_new(temporary, json.dumps(record).encode(), is_durable=is_durable)
        os.rename(temporary, path)
    except OSError:
        remove(temporary)
        raise
    if is_durable:
        sync_folder(os.path.dirname(path))


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
