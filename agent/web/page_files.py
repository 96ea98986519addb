"""The web page's files: everything outside `/v1` is the built page, or a plain answer that says how to build it.

Reading them needs no token, since they hold nothing of anybody: the page sends one with each of its own requests. A
path that names no file is the page itself, which shows what the path means; what is missing under `/assets/` is
missing. Names of assets change with their content, so browsers keep those and ask for the rest each time.
"""

from __future__ import annotations

import asyncio
import gzip
from functools import lru_cache
from pathlib import Path

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from agent.web.envelope import refusal_response
from runtime_client.doors.refusal import refused
from runtime_client.models import ErrorKind

BUILT = Path(__file__).parent / "static"
INDEX = "index.html"
ASSETS = "assets/"
NOT_BUILT = (
    "The web page is not built here. In nightlab's folder:\n\n    make web\n\n"
    "and load this page again. Everything works without it too: nightlab --help\n"
)
SMALL_BYTES = 1024
"""Below this, compressing saves nothing."""
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".webmanifest": "application/manifest+json",
    ".txt": "text/plain; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/vnd.microsoft.icon",
    ".woff2": "font/woff2",
}
_COMPRESSED_ALREADY = frozenset({".png", ".ico", ".woff2"})


def is_of_page(path: str) -> bool:
    return path != "/v1" and not path.startswith("/v1/")


class PageFiles:
    """An ASGI layer before the API."""

    def __init__(self, app: ASGIApp, *, folder: Path = BUILT) -> None:
        self._app = app
        self._folder = folder

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not is_of_page(scope["path"]):
            await self._app(scope, receive, send)
            return
        if scope["method"] not in ("GET", "HEAD"):
            said = f"{scope['path'][:80]} is of the web page, which takes GET alone; the API is under /v1"
            response = refusal_response(refused(ErrorKind.INVALID, "method_not_allowed", said, status=405))
            response.headers["Allow"] = "GET, HEAD"
        else:
            may_be_gzip = "gzip" in Headers(scope=scope).get("accept-encoding", "")
            response = await asyncio.to_thread(self._answer, scope["path"].lstrip("/"), may_be_gzip)
        await response(scope, receive, send)

    def _answer(self, path: str, may_be_gzip: bool) -> Response:
        if not (self._folder / INDEX).is_file():
            return PlainTextResponse(NOT_BUILT, status_code=503, headers={"Cache-Control": "no-store"})
        found = self._file(path)
        if found is None and path.startswith(ASSETS):
            said = f"the page has no /{path[:80]}; it was built anew since: load the page again"
            return refusal_response(refused(ErrorKind.NOT_FOUND, "no_such_path", said))
        return _served(found or self._folder / INDEX, path.startswith(ASSETS), may_be_gzip)

    def _file(self, path: str) -> Path | None:
        """The file that a path names, if it is one of the page's own."""
        try:
            found = (self._folder / path).resolve()
            is_ours = found.is_relative_to(self._folder.resolve()) and found.is_file()
        except (OSError, ValueError):  # a name that no file can have
            return None
        return found if is_ours else None


def _served(file: Path, is_kept: bool, may_be_gzip: bool) -> Response:
    content = file.read_bytes()
    headers = {"Cache-Control": "public, max-age=31536000, immutable" if is_kept else "no-cache"}
    if len(content) >= SMALL_BYTES and file.suffix not in _COMPRESSED_ALREADY:
        headers["Vary"] = "Accept-Encoding"
        if may_be_gzip:
            headers["Content-Encoding"] = "gzip"
            content = _compressed(content)
    return Response(content, headers=headers, media_type=_TYPES.get(file.suffix, "application/octet-stream"))


@lru_cache(maxsize=32)
def _compressed(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)
