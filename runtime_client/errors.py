"""What can go wrong between a program and the runtime, by who must act.

RuntimeClientError
├── Unreachable        nobody answers at that address          (retryable)
├── TimedOut           it answered too late                    (retryable)
├── Rejected           the request was understood and refused
│   ├── InvalidSpec    never acceptable as it is
│   ├── NotFound
│   ├── Conflict       contradicts what is already so
│   ├── OverBudget
│   └── Forbidden
└── ServerFault        the server failed, or cannot now        (retryable as it says)
"""

from __future__ import annotations

from .models import ErrorBody, ErrorKind


class RuntimeClientError(Exception):
    """Base of all; carries what the server said, or what the transport saw."""

    def __init__(self, message: str, *, code: str, retryable: bool = False, path: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.retryable = retryable
        self.path = path


class Unreachable(RuntimeClientError):
    pass


class TimedOut(RuntimeClientError):
    pass


class Rejected(RuntimeClientError):
    pass


class InvalidSpec(Rejected):
    pass


class NotFound(Rejected):
    pass


class Conflict(Rejected):
    pass


class OverBudget(Rejected):
    pass


class Forbidden(Rejected):
    pass


class ServerFault(RuntimeClientError):
    pass


CLASS_BY_KIND: dict[ErrorKind, type[RuntimeClientError]] = {
    ErrorKind.INVALID: InvalidSpec,
    ErrorKind.NOT_FOUND: NotFound,
    ErrorKind.CONFLICT: Conflict,
    ErrorKind.OVER_BUDGET: OverBudget,
    ErrorKind.FORBIDDEN: Forbidden,
    ErrorKind.UNAVAILABLE: ServerFault,
    ErrorKind.FAULT: ServerFault,
}


def from_body(body: ErrorBody) -> RuntimeClientError:
    """The exception that an error envelope stands for."""
    return CLASS_BY_KIND[body.kind](body.message, code=body.code, retryable=body.retryable, path=body.path)
