"""Jobs that wait for each other, and arrays of jobs: the part of the submission format that ties jobs together."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Any, Self

from pydantic import Field, field_validator, model_validator

from .wire import JsonObject, Wire

MAX_TASKS = 1000
"""Of one array."""
MAX_DEPENDENCIES = 100
"""Of one job; more jobs are waited for as an array."""
_SPAN = re.compile(r"(?P<first>\d{1,9})(?:-(?P<last>\d{1,9})(?::(?P<step>\d{1,9}))?)?")
REFERENCE_PATTERN = r"^(j[0-9]{1,18}|a[0-9]{1,18}|#[0-9]{1,6}|token:.{1,128})$"


class Condition(StrEnum):
    """How a job has to end before one that depends on it may start."""

    OK = "ok"
    """It succeeded; of an array: all tasks did."""
    ANY = "any"
    """It ended, in whatever way."""
    NOT_OK = "not_ok"
    """It ended without success; of an array: all tasks ended, at least one of them without success."""


class DependsOn(Wire):
    """A job or an array that has to end first. Shown again, it names a job or an array by its id."""

    job: str = Field(pattern=REFERENCE_PATTERN)
    """`j3`; an array `a10`; `token:T`, the job of the same project with this idempotency token, also one of the same
    submission; in a submission of many jobs also `#0`, the first of them."""
    condition: Condition = Condition.OK


def read_dependencies(value: Any) -> Any:
    """The short forms: a list of names, or a map from name to condition; what has neither is left alone."""
    if isinstance(value, dict) and "job" not in value:
        return [{"job": name, "condition": condition} for name, condition in value.items()]
    if isinstance(value, str):
        return [{"job": value}]
    if isinstance(value, list | tuple):
        return [{"job": one} if isinstance(one, str) else one for one in value]
    return value


class ArraySpec(Wire):
    """Makes an array of a job: n tasks that differ in their index, and perhaps in their parameters."""

    indexes: str | None = Field(default=None, max_length=10_000)
    """`0-99`, `0-99:10`, `1,5,7-9`."""
    parameters: tuple[JsonObject, ...] | None = Field(default=None, min_length=1, max_length=MAX_TASKS)
    """One task for each, with index 0, 1, ...; laid over the parameters of the job."""
    parallel: int | None = Field(default=None, ge=1)
    """At most so many tasks hold devices at once; None: any number."""

    @field_validator("indexes")
    @classmethod
    def _are_indexes(cls, value: str | None) -> str | None:
        if value is not None:
            read_indexes(value)
        return value

    @model_validator(mode="after")
    def _has_tasks(self) -> Self:
        if (self.indexes is None) == (self.parameters is None):
            raise ValueError("array: give either indexes (such as 0-99) or a list of parameters, one for each task")
        return self

    @property
    def tasks(self) -> list[tuple[int, JsonObject]]:
        """Index and parameters of each."""
        if self.parameters is not None:
            return list(enumerate(self.parameters))
        return [(index, {}) for index in read_indexes(self.indexes or "")]


class ArrayTask(Wire):
    """Which task of which array a job is. Set by the server; not to be submitted."""

    array_id: str
    index: int
    n_tasks: int
    parallel: int | None = None


class ArrayView(Wire):
    """An array and what has become of its tasks; the tasks are jobs, and are listed as such."""

    array_id: str
    experiment_name: str
    project: str
    n_tasks: int
    parallel: int | None = None
    counts: dict[str, int]
    """Tasks by state; states that none is in are left out."""
    is_ended: bool
    submitted_at: float
    first_job_id: str
    """The others follow it."""


def read_indexes(text: str) -> list[int]:
    """`0-3,8` -> 0, 1, 2, 3, 8.

    Raises:
        ValueError: it is no list of indexes, one is there twice, or there are too many.
    """
    found: list[int] = []
    for part in text.split(","):
        span = _SPAN.fullmatch(part.strip())
        if span is None:
            raise ValueError(f"array indexes {text[:100]!r}: write 0-99, 0-99:10 or 1,5,7-9")
        first, last, step = int(span["first"]), int(span["last"] or span["first"]), int(span["step"] or 1)
        if last < first or not step:
            raise ValueError(f"array indexes {part!r}: the last is not below the first, and the step is at least 1")
        if len(found) + (last - first) // step + 1 > MAX_TASKS:
            raise ValueError(f"array indexes {text[:100]!r}: an array has {MAX_TASKS} tasks at most; submit several")
        found.extend(range(first, last + 1, step))
    if len(set(found)) < len(found):
        raise ValueError(f"array indexes {text[:100]!r}: an index is there twice")
    return found
