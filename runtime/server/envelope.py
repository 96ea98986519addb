"""Every answer in one envelope: data, refusals, and what the framework itself refuses."""

from __future__ import annotations

import logging
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel
from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.responses import Response

from runtime.store.writer import StoreFailed, StoreFull, StoreRefused
from runtime_client.doors.refusal import Refused, refused
from runtime_client.models import API_VERSION, ErrorBody, ErrorKind

from .refusal import validation_error

log = logging.getLogger(__name__)


def answer(data: Any, *, status: int = 200) -> Response:
    """`{"v", "data"}`; models in `data` are written by pydantic."""
    return _response({"v": API_VERSION, "data": data, "error": None}, status)


def refusal_response(refusal: Refused) -> Response:
    return failure(refusal.body, status=refusal.status)


def failure(body: ErrorBody, *, status: int) -> Response:
    response = _response({"v": API_VERSION, "data": None, "error": body}, status)
    if status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    if body.retryable:
        response.headers["Retry-After"] = "1"
    return response


def _response(content: dict[str, Any], status: int) -> Response:
    return Response(to_json(content, inf_nan_mode="null"), status_code=status, media_type="application/json")


def install(app: FastAPI) -> None:
    """Make the framework's own errors speak the envelope."""
    app.add_exception_handler(Refused, _on_refused)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http)
    app.add_exception_handler(StoreFailed, _on_store)
    app.add_exception_handler(Exception, _on_bug)


async def _on_refused(_request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return refusal_response(error)


async def _on_invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    errors = [dict(item) for item in error.errors()]
    for item in errors:
        origin, *rest = item["loc"]
        item["loc"] = tuple(rest) if origin in ("body", "query", "path", "header") else tuple(item["loc"])
        if origin == "body" and item["type"] == "json_invalid":
            item["loc"] = ()
    return failure(validation_error(errors, _body_model(request)), status=422)


def _body_model(request: Request) -> type[BaseModel] | None:
    route = request.scope.get("route")
    field = route.body_field if isinstance(route, APIRoute) else None
    annotation = field.field_info.annotation if field is not None else None
    return annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None


async def _on_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if isinstance(error.__cause__, Refused):  # the framework wraps what stops it from reading a body
        return refusal_response(error.__cause__)
    if error.status_code == 404:
        message = f"there is nothing at {request.method} {request.url.path}"
        body = ErrorBody(code="no_such_path", kind=ErrorKind.NOT_FOUND, message=message)
    elif error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "")
        message = f"{request.url.path} does not take {request.method}; it takes {allowed or 'another method'}"
        body = ErrorBody(code="method_not_allowed", kind=ErrorKind.INVALID, message=message)
    else:
        kind = ErrorKind.INVALID if error.status_code < 500 else ErrorKind.FAULT
        body = ErrorBody(code="http_error", kind=kind, message=str(error.detail))
    response = failure(body, status=error.status_code)
    response.headers.update(error.headers or {})
    return response


async def _on_store(_request: Request, error: Exception) -> Response:
    if isinstance(error, StoreRefused):
        return refusal_response(refused(ErrorKind.INVALID, "invalid_value", str(error)))
    code = "store_full" if isinstance(error, StoreFull) else "store_failed"
    return refusal_response(refused(ErrorKind.UNAVAILABLE, code, f"nothing was changed: {error}"))


async def _on_bug(request: Request, error: Exception) -> Response:
    log.error("bug while answering %s %s", request.method, request.url.path, exc_info=error)
    message = f"a bug of ours ({type(error).__name__}: {error}); the server's log has the details"
    return failure(ErrorBody(code="bug", kind=ErrorKind.FAULT, message=message), status=500)
