"""The guard at the door: Host, Origin, token, role and size, before any route is looked up. A plain ASGI layer."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from agent.web.envelope import refusal_response
from agent.web.keys import OWNER_FILE, READER_FILE, Keys, Role
from agent.web.page_files import is_of_page
from runtime_client.doors.entrance import bearer_token, check_announced, check_host, counted
from runtime_client.doors.refusal import Refused, refused
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
            check_host(headers, advice="use the address in agent-address.json")
            role = self._role(scope["method"], scope["path"], headers)
            check_announced(headers, MAX_BODY_BYTES)
        except Refused as refusal:
            await refusal_response(refusal)(scope, receive, send)
            return
        scope.setdefault("state", {})["role"] = role
        await self._app(scope, counted(receive, MAX_BODY_BYTES), send)

    def _role(self, method: str, path: str, headers: dict[bytes, str]) -> Role | None:
        """Whose the token is; None: nobody is asked for one here."""
        if path in OPEN_PATHS or (is_of_page(path) and method in _READS):
            return None
        token = bearer_token(headers)
        if token is None:
            said = f"send a token (in {OWNER_FILE} of nightlab's home) as `Authorization: Bearer TOKEN`"
            raise refused(ErrorKind.FORBIDDEN, "no_token", said, status=401)
        role = self._keys.role_of(token)
        if role is None:
            said = f"the token is not of this service; it is in {OWNER_FILE} of nightlab's home"
            raise refused(ErrorKind.FORBIDDEN, "wrong_token", said, status=401)
        if role is not Role.OWNER and method not in _READS:
            said = f"the token in {READER_FILE} may read; to answer and to steer, send the one in {OWNER_FILE}"
            raise refused(ErrorKind.FORBIDDEN, "reader_token", said)
        return role
