"""What is looked at before any route: where a request says that it goes and comes from, and how large it is."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from urllib.parse import urlsplit

from starlette.types import Message, Receive

from runtime_client.doors.refusal import Refused, refused
from runtime_client.loopback import is_loopback
from runtime_client.models import ErrorKind


def check_host(headers: Mapping[bytes, str], *, also: Collection[str] = (), advice: str) -> None:
    """Only names of this machine (and those of `also`, in lower case), and no page of another site.

    Raises:
        Refused: another name, or another site's page.
    """
    host = headers.get(b"host", "")
    if not _is_allowed(host, also):
        said = f"the Host header {host[:80]!r} is not allowed; {advice}"
        raise refused(ErrorKind.FORBIDDEN, "host_not_allowed", said)
    origin = headers.get(b"origin")
    if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
        said = f"the Origin {origin[:80]!r} is not this server ({host}); pages of other sites may not use the API"
        raise refused(ErrorKind.FORBIDDEN, "origin_not_allowed", said)


def _is_allowed(host: str, also: Collection[str]) -> bool:
    if not host or "@" in host or "/" in host:
        return False
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    return host.lower() in also or name in also or is_loopback(name)


def bearer_token(headers: Mapping[bytes, str]) -> str | None:
    """None: there is none."""
    scheme, _, token = headers.get(b"authorization", "").partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None


def check_announced(headers: Mapping[bytes, str], limit: int) -> None:
    """
    Raises:
        Refused: the body says that it is larger than `limit` bytes.
    """
    announced = headers.get(b"content-length", "0")
    if announced.isascii() and announced.isdigit() and int(announced[:18]) > limit:
        raise _too_large(limit)


def counted(receive: Receive, limit: int) -> Receive:
    """Stop reading a body that grows beyond `limit` bytes without having said so: Refused."""
    seen = 0

    async def count() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > limit:
            raise _too_large(limit)
        return message

    return count


def _too_large(limit: int) -> Refused:
    said = f"the request body is larger than {limit} bytes; send less at a time"
    return refused(ErrorKind.INVALID, "too_large", said, status=413)
