"""From a workload file and flags to a `JobSpec`: reading YAML, setting dotted fields, saying what is wrong.

Flags are laid over the file; what neither says has the default of the person's shell (its Python, its folder).
"""

from __future__ import annotations

import difflib
import json
import math
import types
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from runtime.server import strict_yaml
from runtime_client.models import JobSpec

from .failure import Failure, wrong_use

SIZE_LIMIT_BYTES = 1024 * 1024

Fields = dict[str, Any]
"""A spec before it is checked."""


def read_workload(path: Path) -> Fields:
    """The mapping in a workload file, unchecked.

    Raises:
        Failure: it can not be read, is no YAML, or holds no mapping.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise wrong_use(f"{path}: can not be read: {error.strerror}", code="bad_file") from error
    if len(content) > SIZE_LIMIT_BYTES:
        raise wrong_use(f"{path}: larger than 1 MiB; keep data out of workload files", code="bad_file")
    try:
        found = strict_yaml.load(content)
    except strict_yaml.NotYaml as error:
        raise wrong_use(f"{path}: {error}", code="bad_yaml") from error
    if not isinstance(found, dict) or not all(isinstance(key, str) for key in found):
        seen = "is empty" if found is None else f"holds a {type(found).__name__}"
        raise wrong_use(f"{path}: {seen}; a mapping with experiment_name and command is needed", code="bad_file")
    return found


def scalar(text: str) -> object:
    """A flag's value as a person means it: numbers (`1e-3` too), true, false, null, JSON; otherwise the text.

    `inf` and `nan` stay text: JSON has no such numbers, and a script's own parser reads them.
    """
    for convert in (int, float):
        try:
            number = convert(text)
        except ValueError:
            continue
        return number if math.isfinite(number) else text
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if text.lower() in ("null", "none"):
        return None
    if text[:1] in '[{"':
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text


def split_pair(text: str, option: str) -> tuple[str, str]:
    """`name=value`.

    Raises:
        Failure: no `=`, or nothing before it.
    """
    name, sign, value = text.partition("=")
    if not sign or not name.strip():
        raise wrong_use(f"{option} {text!r}: the form is NAME=VALUE", code="bad_option", path=option.lstrip("-"))
    return name.strip(), value


def set_field(fields: Fields, path: str, value: object, *, option: str) -> None:
    """Set a dotted field, making the mappings on the way.

    Raises:
        Failure: a part of the path is there and is no mapping.
    """
    *parents, last = path.split(".")
    target = fields
    for index, parent in enumerate(parents):
        below = target.get(parent)
        if below is None:
            below = target[parent] = {}
        if not isinstance(below, dict):
            raise wrong_use(
                f"{option} {path}: {'.'.join(parents[: index + 1])} is {below!r} and has no fields", code="bad_option"
            )
        target = below
    target[last] = value


def checked_spec(fields: Fields, *, source: str) -> JobSpec:
    """The spec, or every problem at once.

    Raises:
        Failure: unknown keys, missing or impossible values.
    """
    try:
        return JobSpec.model_validate(fields)
    except ValidationError as error:
        raise _refusal(error.errors(include_url=False), source) from error
    except RecursionError as error:
        raise wrong_use(f"{source}: nested too deeply, or a part of it contains itself", code="invalid_spec") from error


def _refusal(details: Sequence[ErrorDetails], source: str) -> Failure:
    lines = list(dict.fromkeys(_line(detail) for detail in details))
    path = ".".join(str(part) for part in details[0]["loc"]) or None
    text = lines[0] if len(lines) == 1 else "\n  " + "\n  ".join(lines)
    return wrong_use(f"{source}: {text}", code="invalid_spec", path=path)


def _line(detail: ErrorDetails) -> str:
    loc = [part for part in detail["loc"] if part not in ("str", "tuple[str, ...]")]
    path = ".".join(str(part) for part in loc)
    at = f"{path}: " if path else ""
    if detail["type"] == "extra_forbidden":
        return f"{at}unknown key{_suggestion(detail['loc'])}"
    if detail["type"] == "missing":
        return f"{at}is required"
    if detail["type"] == "value_error":
        return f"{at}{detail['msg'].removeprefix('Value error, ')}"
    seen = repr(detail["input"])
    return f"{at}{detail['msg']}; seen: {seen if len(seen) <= 80 else seen[:77] + '...'}"


def _suggestion(loc: tuple[int | str, ...]) -> str:
    models: list[type[BaseModel]] = [JobSpec]
    for part in loc[:-1]:
        models = [
            inner
            for model in models
            if (field := model.model_fields.get(str(part))) is not None
            for inner in _models_in(field.annotation)
        ] or models
    allowed = sorted({name for model in models for name in model.model_fields})
    close = difflib.get_close_matches(str(loc[-1]), allowed, n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else f"; allowed: {', '.join(allowed)}"


def _models_in(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and not isinstance(annotation, types.GenericAlias):
        if issubclass(annotation, BaseModel):
            yield annotation
    elif get_origin(annotation) in (Annotated, Union, types.UnionType, dict, tuple, list):
        for part in get_args(annotation):
            yield from _models_in(part)


def resolve_folder(fields: Fields, base: Path) -> None:
    """Make `code_source.root_path` and `environment.python` absolute: relative ones are against the file's folder.

    Raises:
        Failure: the folder is not there.
    """
    source = fields.get("code_source")
    if isinstance(source, dict) and isinstance(source.get("root_path"), str):
        folder = (base / Path(source["root_path"]).expanduser()).resolve()
        if not folder.is_dir():
            raise wrong_use(f"code_source.root_path: {folder} is not a folder", code="no_folder", path="code_source")
        source["root_path"] = str(folder)
    environment = fields.get("environment")
    if isinstance(environment, dict) and isinstance(environment.get("python"), str):
        environment["python"] = str(base / Path(environment["python"]).expanduser())


def laid_over(below: Mapping[str, Any], above: Mapping[str, Any]) -> Fields:
    """Mappings merged, `above` winning."""
    merged = dict(below)
    for name, value in above.items():
        under = merged.get(name)
        merged[name] = laid_over(under, value) if isinstance(under, dict) and isinstance(value, Mapping) else value
    return merged
