"""Who may speak: the owner's token, and the tokens of attempts. Files are made with mode 0600."""

from __future__ import annotations

import contextlib
import hmac
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from runtime.engines.contract import AttemptKey
from runtime.tracking.tokens import attempt_token, verify


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    owner_token: str
    attempt_secret: bytes

    def is_owner(self, token: str) -> bool:
        return hmac.compare_digest(token.encode(), self.owner_token.encode())

    def attempt_token(self, key: AttemptKey) -> str:
        """Bearer token for the metrics gateway, bound to one attempt."""
        return attempt_token(self.attempt_secret, key.job_id, key.attempt)

    def attempt_of(self, token: str) -> AttemptKey | None:
        """The attempt that this token was made for; None when it is no such token."""
        return verify(self.attempt_secret, token)


def open_keys(token_path: Path, secret_path: Path) -> Keys:
    """Read the key files, or make them.

    Raises:
        OSError: they can neither be read nor made.
    """
    return Keys(owner_token=_read_or_make(token_path), attempt_secret=_read_or_make(secret_path).encode())


def _read_or_make(path: Path) -> str:
    with contextlib.suppress(FileNotFoundError):
        found = path.read_text().strip()
        if found:
            path.chmod(0o600)
            return found
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    made = secrets.token_urlsafe(32)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w") as file:
        file.write(made + "\n")
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
    return made
