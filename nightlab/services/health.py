"""Whether somebody answers at an address. Standard library alone: httpx takes longer to import than this to ask."""

from __future__ import annotations

import http.client
from urllib.parse import urlsplit


def answers(url: str, *, timeout_s: float = 2.0) -> bool:
    """Whether GET gives a status below 400."""
    parts = urlsplit(url)
    connection_type = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = connection_type(parts.hostname or "", parts.port, timeout=timeout_s)
    try:
        connection.request("GET", parts.path or "/")
        return connection.getresponse().status < 400
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
