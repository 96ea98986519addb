"""Every answer in one envelope: data, refusals, and what the framework itself refuses."""

from __future__ import annotations

import logging
from typing import Any

import sqlalchemy as sa
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.responses import Response

from agent.store.faults import DiskFull
from agent.web.safe_headers import SAFE_HEADERS
from runtime_client.doors.refusal import Refused, refused
from runtime_client.models import API_VERSION, Envelope, ErrorKind

log = logging.getLogger(__name__)

SAID_OF_REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": Envelope[None], "description": what}
    for status, what in {
        401: "no token, or a wrong one",
        403: "the token, the Host or the Origin does not allow it",
        404: "there is no such thing",
        409: "something else was decided before",
        413: "the body is too large",
        422: "a value is not allowed; `error.path` names it",
        503: "not now; ask again after `Retry-After` seconds",
    }.items()
}
"""For the OpenAPI document: what every route may refuse."""


def refusal_response(refusal: Refused) -> Response:
    content = {"v": API_VERSION, "data": None, "error": refusal.body}
    response = Response(to_json(content), status_code=refusal.status, media_type="application/json")
    if refusal.status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    if refusal.body.retryable:
        response.headers["Retry-After"] = "1"
    return response


def install(app: FastAPI) -> None:
    """Make the framework's own errors speak the envelope."""
    app.add_exception_handler(Refused, _on_refused)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http)
    app.add_exception_handler(DiskFull, _on_store)
    app.add_exception_handler(sa.exc.OperationalError, _on_store)
    app.add_exception_handler(Exception, _on_bug)


async def _on_refused(_request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return refusal_response(error)


async def _on_invalid(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    origin, *rest = first["loc"]
    place = ".".join(str(part) for part in (rest if origin in ("body", "query", "path", "header") else first["loc"]))
    if origin == "body" and first["type"] == "json_invalid":
        place = ""
    message = f"{place or 'the body'}: {first['msg']}"
    return refusal_response(refused(ErrorKind.INVALID, "invalid_value", message, path=place or None))


async def _on_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if isinstance(error.__cause__, Refused):  # the framework wraps what stops it from reading a body
        return refusal_response(error.__cause__)
    if error.status_code == 404:
        said = f"there is nothing at {request.method} {request.url.path}; GET /v1/openapi.json lists what there is"
        return refusal_response(refused(ErrorKind.NOT_FOUND, "no_such_path", said))
    if error.status_code == 405:
        takes = (error.headers or {}).get("Allow", "another method")
        said = f"{request.url.path} does not take {request.method}; it takes {takes}"
        response = refusal_response(refused(ErrorKind.INVALID, "method_not_allowed", said, status=405))
        response.headers.update(error.headers or {})
        return response
    kind = ErrorKind.INVALID if error.status_code < 500 else ErrorKind.FAULT
    return refusal_response(refused(kind, "http_error", str(error.detail), status=error.status_code))


async def _on_store(_request: Request, error: Exception) -> Response:
    log.warning("the store did not answer: %s", error)
    said = "the agent's database can not be used now, and nothing was changed; see that the disk has space"
    return refusal_response(refused(ErrorKind.UNAVAILABLE, "store_unavailable", said))


async def _on_bug(request: Request, error: Exception) -> Response:
    log.error("bug while answering %s %s", request.method, request.url.path, exc_info=error)
    said = f"a bug of ours ({type(error).__name__}); the agent service's log has the details"
    response = refusal_response(refused(ErrorKind.FAULT, "bug", said))
    response.headers.update(SAFE_HEADERS)  # it is made outside of all layers
    return response
