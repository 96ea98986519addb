"""What the server refuses in several places, and validation errors as one sentence."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

from runtime_client.doors.refusal import Refused, refused
from runtime_client.models import ErrorBody, ErrorKind


def no_such_job(job_id: str) -> Refused:
    return refused(
        ErrorKind.NOT_FOUND,
        "no_such_job",
        f"there is no job {job_id[:80]!r}; `nightlab job list` shows those that exist",
    )


def suggestion(seen: str, known: Iterable[str]) -> str:
    """`; did you mean x?`, or nothing when no known name is near."""
    near = difflib.get_close_matches(seen, list(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]}?" if near else ""


def validation_error(errors: Sequence[Any], model: type[BaseModel] | None) -> ErrorBody:
    """The most telling of pydantic's errors, as one sentence with the path, the value seen and what is allowed.

    Args:
        errors: what `ValidationError.errors()` returns.
        model: the model that was validated; names the keys that an unknown one may have meant.
    """
    first = next((error for error in errors if error["type"] == "extra_forbidden"), errors[0])
    place = _walk(first["loc"], model)
    path = ".".join(place.path) or None
    where = path or "the request body"
    if first["type"] == "extra_forbidden":
        hint = suggestion(place.path[-1], place.known_keys)
        if not hint and place.known_keys:
            hint = f"; allowed here: {', '.join(sorted(place.known_keys))}"
        message = f"{where}: unknown key{hint}"
        return ErrorBody(code="unknown_key", kind=ErrorKind.INVALID, message=message, path=path)
    if first["type"] == "missing":
        return ErrorBody(code="missing_key", kind=ErrorKind.INVALID, message=f"{where} is required", path=path)
    if first["type"] == "json_invalid":
        detail = first.get("ctx", {}).get("error", "")
        return ErrorBody(code="invalid_json", kind=ErrorKind.INVALID, message=f"the request body is not JSON: {detail}")
    said = first["msg"].removeprefix("Value error, ").replace("a valid tuple", "a list")
    message = f"{where}: {said}{_seen(first.get('input'))}"
    if len(errors) > 1:
        message += f" (and {len(errors) - 1} more)"
    return ErrorBody(code="invalid_value", kind=ErrorKind.INVALID, message=message, path=path)


def _seen(value: Any) -> str:
    if isinstance(value, dict) or (isinstance(value, list) and len(value) > 10):
        return ""
    shown = repr(value)
    return f"; it is {shown if len(shown) <= 100 else shown[:97] + '...'}"


@dataclass(frozen=True, slots=True)
class _Place:
    path: tuple[str, ...]
    known_keys: tuple[str, ...]
    """Field names of the innermost model on the way."""


def _walk(location: Sequence[str | int], model: type[BaseModel] | None) -> _Place:
    """Follow an error's location through the model, leaving out the names that pydantic gives to union members."""
    path: list[str] = []
    keys: tuple[str, ...] = ()
    here: Any = model
    for part in location:
        members = _members(here)
        if len(members) > 1:
            here = _tagged(members, str(part))
            continue
        here = members[0] if members else None
        path.append(str(part))
        if _is_model(here):
            keys = tuple(here.model_fields)
            here = here.model_fields[part].annotation if part in here.model_fields else None
        elif get_origin(here) in (list, tuple):
            here = get_args(here)[0]
        elif get_origin(here) is dict:
            here = get_args(here)[1]
        else:
            here, keys = None, ()
    return _Place(tuple(path), keys)


def _members(annotation: Any) -> list[Any]:
    """The alternatives of an annotation, without None."""
    if get_origin(annotation) is Annotated:
        return _members(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return [member for member in get_args(annotation) if member is not NoneType]
    return [] if annotation is None else [annotation]


def _tagged(members: Sequence[Any], tag: str) -> Any:
    """The member that a discriminator's value names."""
    for member in members:
        if _is_model(member) and any(field.default == tag for field in member.model_fields.values()):
            return member
    return None


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)
