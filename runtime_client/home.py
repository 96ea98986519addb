"""Where a running server leaves its address and the owner's token: the home folder."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from .errors import Forbidden, Unreachable

CODE_FOLDER = "code"
"""Below the home folder: code snapshots, written by clients, read where jobs run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    url: str
    token: str
    pid: int | None
    mlflow_url: str | None


def default_home() -> Path:
    """`NIGHTLAB_HOME`, or `~/.nightlab`."""
    named = os.environ.get("NIGHTLAB_HOME")
    return Path(named) if named else Path.home() / ".nightlab"


def read_address(home: Path | None = None) -> Address:
    """Read the address file and the token.

    Raises:
        Unreachable: no server has left its address there.
        Forbidden: the token can not be read.
    """
    folder = home or default_home()
    try:
        found = json.loads((folder / "server.json").read_text())
        url = str(found["url"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Unreachable(
            f"no runtime is running for {folder}; start it with: nightlab up", code="not_running", retryable=True
        ) from error
    try:
        token = (folder / "token").read_text().strip()
    except OSError as error:
        raise Forbidden(
            f"the owner's token {folder / 'token'} can not be read: {error.strerror}; run this as the user who owns it",
            code="no_token",
        ) from error
    return Address(url=url, token=token, pid=found.get("pid"), mlflow_url=found.get("mlflow_url"))
