"""The MCP server over HTTP: loopback unless told otherwise, and nothing without the token."""

from __future__ import annotations

import hmac
import os
import secrets
from pathlib import Path

from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

TOKEN_FILE = "mcp-token"
PATH = "/mcp"
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def token_at(home: Path) -> str:
    """The token of outside agents, made at the first use with mode 0600. It opens nothing but this server."""
    path = home / TOKEN_FILE
    try:
        made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_text(encoding="utf-8").strip()
    with os.fdopen(made, "w", encoding="utf-8") as file:
        token = secrets.token_urlsafe(32)
        file.write(token + "\n")
    return token


def guarded_app(server: MCPServer, *, host: str, port: int, token: str) -> Starlette:
    """The server's app behind the token; requests that a web page could send by a trick are refused by their host."""
    names = (*_LOOPBACK[:2], "[::1]") if host in _LOOPBACK else (host,)
    hosts = [f"{name}:{port}" for name in names]
    security = TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=[f"http://{one}" for one in hosts])
    app = server.streamable_http_app(streamable_http_path=PATH, transport_security=security, host=host)
    app.add_middleware(_TokenGuard, token=token)
    return app


class _TokenGuard:
    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            given = Headers(scope=scope).get("authorization", "")
            if not hmac.compare_digest(given.encode("utf-8", "replace"), self._expected):
                text = f"an Authorization header with the token in {TOKEN_FILE} of nightlab's home is needed\n"
                refusal = PlainTextResponse(text, status_code=401, headers={"WWW-Authenticate": "Bearer"})
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)
