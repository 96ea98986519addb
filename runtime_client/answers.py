"""From the data of an answer to the models of the wire, and from ids to paths."""

from __future__ import annotations

from typing import TypeVar
from urllib.parse import quote

from pydantic import TypeAdapter, ValidationError

from .errors import NotFound, ServerFault

T = TypeVar("T")


def segment(name: str) -> str:
    """An id as a part of a path.

    Raises:
        NotFound: nothing has such a name, and it would make another path.
    """
    if not name or "/" in name or name in (".", ".."):
        raise NotFound(f"{name!r} is no id of a job or run", code="no_such_id")
    return quote(name, safe="")


def as_one(model: type[T], data: object) -> T:
    return _checked(TypeAdapter(model), data)


def as_many(adapter: TypeAdapter[list[T]], data: object) -> list[T]:
    return _checked(adapter, data)


def _checked(adapter: TypeAdapter[T], data: object) -> T:
    try:
        return adapter.validate_python(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ServerFault(
            f"the server's answer is not understood at {where or 'its root'}: {first['msg']}; "
            "client and server are probably of different versions",
            code="not_understood",
        ) from error
