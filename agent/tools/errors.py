"""What a tool may raise. Anything else is a bug of ours.

Errors of the client that are worth a repeat (`Unreachable`, `TimedOut`, a `ServerFault` that says so) pass through:
the session waits for the runtime and goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from runtime_client.errors import InvalidSpec, NotFound, RuntimeClientError


class ToolError(Exception):
    def __init__(self, message: str, *, code: str) -> None:
        super().__init__(message)
        self.code = code


class FixAndRetry(ToolError):
    """The tool was used wrongly; the text says how to use it."""


class ToolFailed(ToolError):
    """Final: adapt the plan."""


@contextmanager
def tool_boundary() -> Iterator[None]:
    """Turn what the client says into the two errors of tools.

    Raises:
        FixAndRetry: the runtime calls the request invalid, or the thing named does not exist.
        ToolFailed: it refuses for good.
        RuntimeClientError: worth a repeat later.
    """
    try:
        yield
    except (InvalidSpec, NotFound) as error:
        raise FixAndRetry(error.message, code=error.code) from error
    except RuntimeClientError as error:
        if error.retryable:
            raise
        raise ToolFailed(error.message, code=error.code) from error
