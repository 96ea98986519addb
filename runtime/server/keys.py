"""Who may speak: the owner's token, and the tokens of attempts. Files are made with mode 0600."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from pathlib import Path

from runtime.engines.contract import AttemptKey
from runtime.tracking.tokens import attempt_token, verify
from runtime_client.doors.token_file import read_or_make


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
    return Keys(owner_token=read_or_make(token_path), attempt_secret=read_or_make(secret_path).encode())
