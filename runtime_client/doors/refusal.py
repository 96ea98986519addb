"""Refusals: what a service says when it does not do what was asked. Every one becomes an error envelope."""

from __future__ import annotations

from runtime_client.models import ErrorBody, ErrorKind

STATUS_BY_KIND: dict[ErrorKind, int] = {
    ErrorKind.INVALID: 422,
    ErrorKind.NOT_FOUND: 404,
    ErrorKind.CONFLICT: 409,
    ErrorKind.OVER_BUDGET: 402,
    ErrorKind.FORBIDDEN: 403,
    ErrorKind.UNAVAILABLE: 503,
    ErrorKind.FAULT: 500,
}


class Refused(Exception):
    """The request is not done; `body` says why and what to do."""

    def __init__(self, body: ErrorBody, *, status: int | None = None) -> None:
        super().__init__(body.message)
        self.body = body
        self.status = STATUS_BY_KIND[body.kind] if status is None else status


def refused(
    kind: ErrorKind,
    code: str,
    message: str,
    *,
    path: str | None = None,
    retryable: bool | None = None,
    status: int | None = None,
) -> Refused:
    """A refusal; `retryable` is by default true for UNAVAILABLE alone."""
    may_retry = kind is ErrorKind.UNAVAILABLE if retryable is None else retryable
    return Refused(ErrorBody(code=code, kind=kind, message=message, retryable=may_retry, path=path), status=status)
