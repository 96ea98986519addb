"""One home, one server: the lock, and the address file that tells clients where it listens."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from dataclasses import dataclass
from pathlib import Path


class HomeOccupied(Exception):
    """Another server runs for this home."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeLock:
    """Held while the process lives; the kernel lets go of it however the process ends."""

    handle: int

    def release(self) -> None:
        os.close(self.handle)


def lock_home(path: Path) -> HomeLock:
    """Take the lock of a home folder, and write our process id into it.

    Raises:
        HomeOccupied: another process has it; the message names it.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        holder = os.read(handle, 32).decode("ascii", "replace").strip() or "unknown"
        os.close(handle)
        raise HomeOccupied(
            f"a runtime already runs for {path.parent} (process {holder}); use it, or stop it with: nightlab down"
        ) from error
    os.ftruncate(handle, 0)
    os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
    return HomeLock(handle=handle)


def write_address(path: Path, *, url: str, started_at: float, mlflow_url: str | None) -> None:
    content = {"url": url, "pid": os.getpid(), "started_at": started_at, "mlflow_url": mlflow_url}
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_text(json.dumps(content) + "\n")
    partial.replace(path)


def remove_address(path: Path) -> None:
    """Take the address away, if it is still ours."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        if json.loads(path.read_text()).get("pid") == os.getpid():
            path.unlink()
