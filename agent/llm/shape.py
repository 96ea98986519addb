"""The shape of an answer: its JSON Schema as endpoints take it, and whether what was read has it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import BaseModel, ValidationError

T = TypeVar("T", bound=BaseModel)

MAX_SENTENCES = 8
_SHOWN_CHARACTERS = 80
_WRAPPERS = ("arguments", "parameters", "answer", "properties", "result", "output", "response")
"""Under these names models put an answer that was to stand alone."""
_LEFT_OUT = frozenset({"title", "default", "examples", "discriminator", "$defs"})
_MAX_DEPTH = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted(Generic[T]):
    value: T | None
    problems: tuple[str, ...] = ()
    """Sentences for the model; empty exactly where there is a value."""


def schema_of(reply: type[BaseModel]) -> dict[str, object]:
    """Its JSON Schema without references, titles and defaults, which some servers do not read.

    Raises:
        ValueError: the class refers to itself.
    """
    whole = reply.model_json_schema()
    plain = _plain(whole, whole.get("$defs", {}), 0)
    assert isinstance(plain, dict)
    return plain


def example_of(reply: type[BaseModel]) -> object:
    """An answer of that shape: the first example that its class gives, else one made up."""
    whole = reply.model_json_schema()
    given = whole.get("examples")
    return given[0] if given else _made_up(schema_of(reply))


def fit(data: object, reply: type[T]) -> Fitted[T]:
    """The data as the class; where it does not fit, what it may have been wrapped in, or have left out, is undone."""
    first: tuple[str, ...] = ()
    for form in _forms(data, reply):
        try:
            return Fitted(value=reply.model_validate(form))
        except ValidationError as error:
            first = first or sentences(error)
    return Fitted(value=None, problems=first)


def sentences(error: ValidationError) -> tuple[str, ...]:
    """What is wrong, where, and what was seen; the first few."""
    found: list[str] = []
    for detail in error.errors(include_url=False):
        path = ".".join(str(part) for part in detail["loc"])
        seen = "" if detail["type"] == "missing" else f"; seen: {_shown(detail['input'])}"
        what = detail["msg"].removeprefix("Value error, ")
        found.append(f"{path}: {what}{seen}" if path else f"{what}{seen}")
    left = len(found) - MAX_SENTENCES
    return tuple(found[:MAX_SENTENCES]) + ((f"and {left} more",) if left > 0 else ())


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 3]}..."


def _forms(data: object, reply: type[BaseModel]) -> Iterator[object]:
    yield data
    if isinstance(data, dict):
        for name in _WRAPPERS:
            if name in data and name not in reply.model_fields and isinstance(data[name], dict | list):
                yield data[name]
        return
    if isinstance(data, list):
        lists = [
            name for name, field in reply.model_json_schema()["properties"].items() if field.get("type") == "array"
        ]
        if lists:
            yield {lists[0]: data}
        if len(data) == 1:
            yield data[0]


def _plain(node: object, definitions: Mapping[str, object], depth: int) -> object:
    if depth > _MAX_DEPTH:
        raise ValueError("the class of an answer must not refer to itself")
    if isinstance(node, list):
        return [_plain(one, definitions, depth) for one in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _plain(definitions[str(node["$ref"]).rsplit("/", 1)[-1]], definitions, depth + 1)
    properties = node.get("properties")
    plain = {
        key: _plain(value, definitions, depth + 1)
        for key, value in node.items()
        if key not in _LEFT_OUT and key != "properties"
    }
    if isinstance(properties, dict):  # Names of fields, which may be `title`.
        plain["properties"] = {name: _plain(value, definitions, depth + 1) for name, value in properties.items()}
    return plain


def _made_up(schema: object) -> object:
    if not isinstance(schema, dict):
        return None
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    for key in ("anyOf", "oneOf", "allOf"):
        if schema.get(key):
            return _made_up(schema[key][0])
    match schema.get("type"):
        case "object":
            return {name: _made_up(one) for name, one in schema.get("properties", {}).items()}
        case "array":
            return [_made_up(schema.get("items"))]
        case "string":
            return "..."
        case "boolean":
            return True
        case "integer" | "number":
            return _number_in(schema)
        case _:
            return None


def _number_in(schema: Mapping[str, object]) -> float | int:
    """Inside of the bounds."""
    low, high = (
        schema.get("minimum", schema.get("exclusiveMinimum")),
        schema.get("maximum", schema.get("exclusiveMaximum")),
    )
    if schema["type"] == "integer":
        return int(low) + ("exclusiveMinimum" in schema) if isinstance(low, int | float) else 1
    if isinstance(low, int | float) and isinstance(high, int | float):
        return (low + high) / 2
    return low + 1.0 if isinstance(low, int | float) else 0.5
