"""Who may speak: the owner's token, and a reader's, which changes nothing. Files are made with mode 0600."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from runtime_client.doors.token_file import read_or_make

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
    return Keys(owner_token=read_or_make(home / OWNER_FILE), reader_token=read_or_make(home / READER_FILE))
