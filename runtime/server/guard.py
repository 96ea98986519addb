"""The guard at the door: Host, Origin, size, and the owner's token, before any route is looked up.

A plain ASGI layer. It refuses what is not allowed; what it lets through may still be refused by a route. Requests
to the metrics gateway bring attempt tokens, which the gateway checks itself.
"""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from runtime_client.doors.entrance import bearer_token, check_announced, check_host, counted
from runtime_client.doors.refusal import Refused, refused
from runtime_client.models import ErrorKind

from .config import ServerConfig
from .envelope import refusal_response
from .keys import Keys

GATEWAY_PREFIXES = ("/api/2.0/", "/api/3.0/")
OPEN_PATHS = frozenset({"/v1/health", "/health", "/version"})
_ADVICE = "use a loopback address, or add the name to allowed_hosts"
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
            check_host(headers, also=self._allowed, advice=_ADVICE)
            self._check_token(scope["path"], headers)
            limit = self._size_limit(scope["method"], scope["path"], headers)
        except Refused as refusal:
            await refusal_response(refusal)(scope, receive, send)
            return
        await self._limited(scope, receive, send, limit)

    def _check_token(self, path: str, headers: dict[bytes, str]) -> None:
        if path in OPEN_PATHS or path.startswith(GATEWAY_PREFIXES):
            return
        token = bearer_token(headers)
        if token is None:
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
        check_announced(headers, limit)
        return limit

    async def _limited(self, scope: Scope, receive: Receive, send: Send, limit: int) -> None:
        """Go on, but stop reading a body that grows beyond `limit` without having said so."""
        has_begun = _Watch()
        try:
            await self._app(scope, counted(receive, limit), has_begun.around(send))
        except Refused as refusal:
            if has_begun.is_true:
                raise
            await refusal_response(refusal)(scope, receive, send)


class _Watch:
    """Whether an answer has begun."""

    def __init__(self) -> None:
        self.is_true = False

    def around(self, send: Send) -> Send:
        async def watched(message: Message) -> None:
            self.is_true = True
            await send(message)

        return watched
