"""Who may speak: the owner's token, and a reader's, which changes nothing. Files are made with mode 0600."""

from __future__ import annotations

import contextlib
import hmac
import os
import secrets
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

OWNER_FILE = "agent-token"
READER_FILE = "agent-reader-token"


class Role(StrEnum):
    OWNER = "owner"
    """May read, answer gates and steer."""
    READER = "reader"
    """May read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    owner_token: str
    reader_token: str

    def role_of(self, token: str) -> Role | None:
        """None: it is neither's."""
        given = token.encode()
        is_owner = hmac.compare_digest(given, self.owner_token.encode())
        is_reader = hmac.compare_digest(given, self.reader_token.encode())
        if is_owner:
            return Role.OWNER
        return Role.READER if is_reader else None


def open_keys(home: Path) -> Keys:
    """Read the token files of a home folder, or make them.

    Raises:
        OSError: they can neither be read nor made.
    """
    return Keys(owner_token=_read_or_make(home / OWNER_FILE), reader_token=_read_or_make(home / READER_FILE))


def _read_or_make(path: Path) -> str:
    with contextlib.suppress(FileNotFoundError):
        found = path.read_text(encoding="utf-8").strip()
        if found:
            path.chmod(0o600)
            return found
    made = secrets.token_urlsafe(32)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(made + "\n")
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
    return made
