"""The guard at the door: Host, Origin, size, and the owner's token, before any route is looked up.

A plain ASGI layer. It refuses what is not allowed; what it lets through may still be refused by a route. Requests
to the metrics gateway bring attempt tokens, which the gateway checks itself.
"""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from runtime_client.models import ErrorKind

from .config import ServerConfig
from .envelope import refusal_response
from .keys import Keys
from .refusal import Refused, refused

GATEWAY_PREFIXES = ("/api/2.0/", "/api/3.0/")
OPEN_PATHS = frozenset({"/v1/health", "/health", "/version"})
ARTIFACT_PREFIXES = ("/v1/runs/", "/api/2.0/mlflow-artifacts/")


class Guard:
    def __init__(self, app: ASGIApp, *, config: ServerConfig, keys: Keys) -> None:
        self._app = app
        self._config = config
        self._keys = keys
        self._allowed = frozenset(name.lower() for name in config.allowed_hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        try:
            self._check_host(headers)
            self._check_token(scope["path"], headers)
            limit = self._size_limit(scope["method"], scope["path"], headers)
        except Refused as refusal:
            await refusal_response(refusal)(scope, receive, send)
            return
        await self._limited(scope, receive, send, limit)

    def _check_host(self, headers: dict[bytes, str]) -> None:
        host = headers.get(b"host", "")
        if not self._is_allowed(host):
            raise refused(
                ErrorKind.FORBIDDEN,
                "host_not_allowed",
                f"the Host header {host!r} is not allowed; use a loopback address, or add the name to allowed_hosts",
            )
        origin = headers.get(b"origin")
        if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
            raise refused(
                ErrorKind.FORBIDDEN,
                "origin_not_allowed",
                f"the Origin {origin!r} is not this server ({host}); pages of other sites may not use the API",
            )

    def _is_allowed(self, host: str) -> bool:
        if not host or "@" in host or "/" in host:
            return False
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        return host.lower() in self._allowed or name in self._allowed or is_loopback(name)

    def _check_token(self, path: str, headers: dict[bytes, str]) -> None:
        if path in OPEN_PATHS or path.startswith(GATEWAY_PREFIXES):
            return
        scheme, _, token = headers.get(b"authorization", "").partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            raise refused(
                ErrorKind.FORBIDDEN,
                "no_token",
                f"send the owner's token (in {self._config.token_path}) as `Authorization: Bearer TOKEN`",
                status=401,
            )
        if self._keys.is_owner(token):
            return
        if self._keys.attempt_of(token) is not None:
            raise refused(
                ErrorKind.FORBIDDEN, "attempt_token", "a job's token reaches the metrics gateway and nothing else"
            )
        raise refused(
            ErrorKind.FORBIDDEN,
            "wrong_token",
            f"the token is not the owner's token of this server (it is in {self._config.token_path})",
            status=401,
        )

    def _size_limit(self, method: str, path: str, headers: dict[bytes, str]) -> int:
        is_artifact = method == "PUT" and path.startswith(ARTIFACT_PREFIXES)
        limit = self._config.max_artifact_bytes if is_artifact else self._config.max_body_bytes
        announced = headers.get(b"content-length", "0")
        if announced.isascii() and announced.isdigit() and int(announced) > limit:
            raise _too_large(limit)
        return limit

    async def _limited(self, scope: Scope, receive: Receive, send: Send, limit: int) -> None:
        """Go on, but stop reading a body that grows beyond `limit` without having said so."""
        has_begun = _Watch()
        try:
            await self._app(scope, _counted(receive, limit), has_begun.around(send))
        except Refused as refusal:
            if has_begun.is_true:
                raise
            await refusal_response(refusal)(scope, receive, send)


def is_loopback(name: str) -> bool:
    """Whether a host name or address means this machine and nothing else."""
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


class _Watch:
    """Whether an answer has begun."""

    def __init__(self) -> None:
        self.is_true = False

    def around(self, send: Send) -> Send:
        async def watched(message: Message) -> None:
            self.is_true = True
            await send(message)

        return watched


def _counted(receive: Receive, limit: int) -> Receive:
    seen = 0

    async def counted() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > limit:
            raise _too_large(limit)
        return message

    return counted


def _too_large(limit: int) -> Refused:
    return refused(
        ErrorKind.INVALID,
        "too_large",
        f"the request body is larger than {limit} bytes; send less at a time",
        status=413,
    )
