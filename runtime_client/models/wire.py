"""The base of every wire model, and the envelope around every answer.

May be imported by anyone; imports nothing of ours.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict

API_VERSION = 1


class Wire(BaseModel):
    """A model that crosses a process border: unknown keys are errors, values are frozen."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ErrorKind(StrEnum):
    """Who must act."""

    INVALID = "invalid"
    """The caller sent something that can never be accepted; `path` names the field where there is one."""
    NOT_FOUND = "not_found"
    """The thing named does not exist."""
    CONFLICT = "conflict"
    """It contradicts what is already so (a stale session, a finished job)."""
    OVER_BUDGET = "over_budget"
    """A budget or quota does not allow it."""
    FORBIDDEN = "forbidden"
    """The token is missing, wrong, or does not reach this far."""
    UNAVAILABLE = "unavailable"
    """Not now: starting, disk full, tracking server away. Try again."""
    FAULT = "fault"
    """A bug of ours."""


class ErrorBody(Wire):
    """What went wrong and what to do about it."""

    code: str
    """Stable, machine-readable, snake_case: `unknown_priority_class`, `stale_session`, ..."""
    kind: ErrorKind
    message: str
    """For a person: the value seen, the values allowed, what to do."""
    retryable: bool = False
    path: str | None = None
    """Dotted path of the offending field (`compute.num_accelerators`), None where there is none."""


T = TypeVar("T")


class Envelope(BaseModel, Generic[T]):
    """Every answer of the API and every `--json` output: exactly one of `data` and `error` is set."""

    model_config = ConfigDict(extra="forbid")

    v: int = API_VERSION
    data: T | None = None
    error: ErrorBody | None = None


JsonScalar = str | int | float | bool | None
JsonObject = dict[str, Any]
