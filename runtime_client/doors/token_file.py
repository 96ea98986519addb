"""Tokens in files of the owner's alone, made with mode 0600 where there are none yet."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path


def read_or_make(path: Path) -> str:
    """The token in the file.

    Raises:
        OSError: it can neither be read nor made.
    """
    with contextlib.suppress(FileNotFoundError):
        found = path.read_text(encoding="utf-8").strip()
        if found:
            path.chmod(0o600)
            return found
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    made = secrets.token_urlsafe(32)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(made + "\n")
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
    return made
