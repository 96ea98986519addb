"""Where the API of a home's agent service is: a file beside its tokens."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

ADDRESS_FILE = "agent-address.json"


def write_address(home: Path, url: str) -> None:
    """
    Raises:
        OSError: it can not be written.
    """
    path = home / ADDRESS_FILE
    said = {"url": url, "port": int(url.rpartition(":")[2]), "pid": os.getpid(), "started_at": time.time()}
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(json.dumps(said), encoding="utf-8")
    draft.replace(path)


def port_before(home: Path) -> int | None:
    """The port that the last service of this home had; None: there was none, or the file says nothing of use."""
    port = _said(home).get("port")
    return port if isinstance(port, int) else None


def url_of(home: Path, pid: int | None) -> str | None:
    """The address of the service with this pid; None: it has not said yet, or another one did."""
    said = _said(home)
    return str(said["url"]) if pid is not None and said.get("pid") == pid and "url" in said else None


def _said(home: Path) -> dict[str, Any]:
    try:
        found = json.loads((home / ADDRESS_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
