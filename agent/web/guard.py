"""The guard at the door: Host, Origin, token, role and size, before any route is looked up. A plain ASGI layer."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent.web.envelope import Refused, refusal_response, refused
from agent.web.keys import OWNER_FILE, READER_FILE, Keys, Role
from runtime_client.models import ErrorKind

OPEN_PATHS = frozenset({"/v1/health"})
MAX_BODY_BYTES = 64 * 1024
_READS = frozenset({"GET", "HEAD", "OPTIONS"})


class Guard:
    def __init__(self, app: ASGIApp, *, keys: Keys) -> None:
        self._app = app
        self._keys = keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        try:
            _check_host(headers)
            self._check_token(scope["method"], scope["path"], headers)
            _check_announced(headers)
        except Refused as refusal:
            await refusal_response(refusal)(scope, receive, send)
            return
        await self._app(scope, _counted(receive), send)

    def _check_token(self, method: str, path: str, headers: dict[bytes, str]) -> None:
        if path in OPEN_PATHS:
            return
        scheme, _, token = headers.get(b"authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            said = f"send a token (in {OWNER_FILE} of nightlab's home) as `Authorization: Bearer TOKEN`"
            raise refused(ErrorKind.FORBIDDEN, "no_token", said, status=401)
        role = self._keys.role_of(token.strip())
        if role is None:
            said = f"the token is not of this service; it is in {OWNER_FILE} of nightlab's home"
            raise refused(ErrorKind.FORBIDDEN, "wrong_token", said, status=401)
        if role is not Role.OWNER and method not in _READS:
            said = f"the token in {READER_FILE} may read; to answer and to steer, send the one in {OWNER_FILE}"
            raise refused(ErrorKind.FORBIDDEN, "reader_token", said)


def _check_host(headers: dict[bytes, str]) -> None:
    """Only names of this machine, and no page of another site: so a page can not reach us through a browser."""
    host = headers.get(b"host", "")
    if not _is_loopback_host(host):
        said = f"the Host header {host[:80]!r} is not allowed; use the address in agent-address.json"
        raise refused(ErrorKind.FORBIDDEN, "host_not_allowed", said)
    origin = headers.get(b"origin")
    if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
        said = f"the Origin {origin[:80]!r} is not this service ({host}); pages of other sites may not use the API"
        raise refused(ErrorKind.FORBIDDEN, "origin_not_allowed", said)


def _is_loopback_host(host: str) -> bool:
    if not host or "@" in host or "/" in host:
        return False
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _check_announced(headers: dict[bytes, str]) -> None:
    announced = headers.get(b"content-length", "0")
    if announced.isascii() and announced.isdigit() and int(announced[:18]) > MAX_BODY_BYTES:
        raise _too_large()


def _counted(receive: Receive) -> Receive:
    """Stop reading a body that grows beyond the limit without having said so."""
    seen = 0

    async def counted() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > MAX_BODY_BYTES:
            raise _too_large()
        return message

    return counted


def _too_large() -> Refused:
    said = f"the request body is larger than {MAX_BODY_BYTES} bytes; send less"
    return refused(ErrorKind.INVALID, "too_large", said, status=413)
