"""Reading a task file: YAML to `Task`, every problem named by its path, with the value seen and what is allowed."""

from __future__ import annotations

import difflib
import os
import re
import types
from collections.abc import Hashable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from agent.brief import brief_text
from agent.task import DataSource, Task
from agent.task_checks import Problem, cross_checks
from runtime_client.models import CodeSource, SnapshotMode


class DocumentError(Exception):
    """A file can not be used; `problems` says what to change."""

    what = "file"
    keys = ""
    """The ones that it has to have."""

    def __init__(self, source: Path, problems: list[Problem]) -> None:
        self.source = source
        self.problems = problems
        lines = [f"  {p.path + ': ' if p.path else ''}{p.message}" for p in problems]
        super().__init__(f"{source}: the {self.what} can not be used\n" + "\n".join(lines))


class TaskError(DocumentError):
    what = "task"
    keys = "task, objective, job, space, budgets"


def load_task(path: Path) -> Task:
    """Read and check a task file; a relative code folder is resolved against the file's folder.

    Raises:
        TaskError: unreadable, not YAML, unknown keys, impossible values; all problems at once.
    """
    return parse_task(read_text(path, TaskError), source=path)


def read_text(path: Path, error: type[DocumentError]) -> str:
    """Raises the error for what can not be read."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as why:
        reason = why.strerror if isinstance(why, OSError) else "it is not UTF-8 text"
        raise error(path, [Problem(path="", message=f"can not be read: {reason}")]) from why


def parse_task(text: str, *, source: Path) -> Task:
    """The same from text; `source` names the file in messages and gives the folder for relative paths.

    Raises:
        TaskError: as `load_task`.
    """
    data = read_yaml(text, source, TaskError)
    try:
        task = Task.model_validate(data)
    except ValidationError as error:
        raise TaskError(source, explained(error.errors(), data, Task)) from error
    task = _with_address_folder(_with_data_folder(_with_code_folder(task, source), source), source)
    task = _with_private_folder(_with_readable_folder(task, source), source)
    task, unread = _with_brief(_with_key_folder(task, source), source)
    problems = [*unread, *cross_checks(task)]
    if problems:
        raise TaskError(source, problems)
    return task


class _UniqueKeyLoader(yaml.SafeLoader):
    """PyYAML keeps the last of two equal keys in silence; here the second is an error."""


def _construct_mapping(loader: _UniqueKeyLoader, node: yaml.MappingNode) -> dict[Hashable, object]:
    loader.flatten_mapping(node)
    seen: dict[Hashable, object] = {}
    for key_node, value_node in node.value:
        key = _key(loader, key_node)
        if not isinstance(key, Hashable):
            raise yaml.constructor.ConstructorError(None, None, "a key must be a plain value", key_node.start_mark)
        if key in seen:
            raise yaml.constructor.ConstructorError(None, None, f"the key {key!r} is given twice", key_node.start_mark)
        seen[key] = loader.construct_object(value_node, deep=True)
    return seen


def _key(loader: _UniqueKeyLoader, node: yaml.Node) -> object:
    """A key `on` is this word, as in YAML 1.2; PyYAML, which has YAML 1.1, reads `true`."""
    is_word = isinstance(node, yaml.ScalarNode) and node.value.lower() in ("on", "off", "yes", "no", "y", "n")
    return node.value if is_word else loader.construct_object(node, deep=True)


_UniqueKeyLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _construct_mapping)
# `1e-4` is a number in YAML 1.2 and to everybody who writes one; PyYAML, which has YAML 1.1, reads a text.
_UniqueKeyLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)[eE][-+]?[0-9]+\Z"),
    list("-+.0123456789"),
)
# `22:30` is a time of day to everybody who writes one; PyYAML reads 22 times 60 and 30. The first that fits counts.
_TIME_OF_DAY = ("tag:yaml.org,2002:str", re.compile(r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?\Z"))
_UniqueKeyLoader.yaml_implicit_resolvers = {
    first: [_TIME_OF_DAY, *resolvers] if first in list("-+0123456789") else resolvers
    for first, resolvers in _UniqueKeyLoader.yaml_implicit_resolvers.items()
}


def read_yaml(text: str, source: Path, kind: type[DocumentError]) -> dict[str, object]:
    """A mapping; raises an error of this kind."""
    try:
        data = yaml.load(text, Loader=_UniqueKeyLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
        what = getattr(error, "problem", None) or str(error)
        raise kind(source, [Problem(path="", message=f"not readable as YAML: {where}{what}")]) from error
    except (RecursionError, ValueError) as error:
        raise kind(source, [Problem(path="", message=f"not readable as YAML: {error}")]) from error
    if not isinstance(data, dict):
        seen = "is empty" if data is None else f"holds a {type(data).__name__}"
        needed = f"a mapping with the keys {kind.keys} is needed"
        raise kind(source, [Problem(path="", message=f"the file {seen}; {needed}")])
    return data


def explained(details: Sequence[ErrorDetails], data: object, root: type[BaseModel]) -> list[Problem]:
    """One problem a place, by its path in the file, with the value seen and what is allowed.

    Where several kinds of value are allowed, pydantic tells of each; here they are one sentence.
    """
    by_place: dict[tuple[tuple[int | str, ...], bool], list[ErrorDetails]] = {}
    for detail in details:
        is_of_keys = detail["type"] in ("extra_forbidden", "missing")
        by_place.setdefault((_as_written(detail, data), is_of_keys), []).append(detail)
    found = []
    for (loc, _), group in by_place.items():
        messages = dict.fromkeys(str(detail["msg"]) for detail in group)
        if len(messages) == 1:
            found.append(_explain(group[0], loc, root))
        else:
            what = f"{' or '.join(messages)}; seen: {_shown(group[0]['input'])}"
            found.append(Problem(path=".".join(str(part) for part in loc), message=what))
    return found


def _as_written(detail: ErrorDetails, data: object) -> tuple[int | str, ...]:
    """A location of pydantic without what names a member of a union, which nobody wrote into the file."""
    parts = detail["loc"]
    kept: list[int | str] = []
    at = data
    for index, part in enumerate(parts):
        is_there = part in at if isinstance(at, dict) else isinstance(at, list) and part in range(len(at))
        if is_there:
            at = at[part]  # type: ignore[index]
        elif not (index == len(parts) - 1 and detail["type"] == "missing"):
            continue
        kept.append(part)
    return tuple(kept)


def _explain(detail: ErrorDetails, loc: tuple[int | str, ...], root: type[BaseModel]) -> Problem:
    path = ".".join(str(part) for part in loc)
    match detail["type"]:
        case "extra_forbidden":
            allowed = _allowed_keys(detail["loc"][:-1], root)
            close = difflib.get_close_matches(str(loc[-1]), allowed, n=1, cutoff=0.5)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            return Problem(path=path, message=f"unknown key{hint}; allowed: {', '.join(allowed)}".replace("?; ", "? "))
        case "missing":
            return Problem(path=path, message="is required")
        case "union_tag_invalid":
            context = detail["ctx"]
            key = context["discriminator"].strip("'")
            what = f"must be one of {context['expected_tags']}; seen: {context['tag']!r}"
            return Problem(path=f"{path}.{key}", message=what)
        case "union_tag_not_found":
            key = detail["ctx"]["discriminator"].strip("'")
            return Problem(path=f"{path}.{key}", message="is required")
        case "value_error":
            return Problem(path=path, message=f"{detail['msg'].removeprefix('Value error, ')}")
        case _:
            return Problem(path=path, message=f"{detail['msg']}; seen: {_shown(detail['input'])}")


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _allowed_keys(loc: tuple[int | str, ...], root: type[BaseModel]) -> list[str]:
    """Keys of the model at a location of a validation error (union tags included)."""
    found: list[type[BaseModel]] = [root]
    for part in loc:
        nested: list[type[BaseModel]] = []
        for model in found:
            field = model.model_fields.get(str(part))
            nested.extend(_models_in(field.annotation) if field is not None else ())
        found = nested or _narrowed(found, str(part))
    return sorted({name for model in found for name in model.model_fields})


def _narrowed(models: list[type[BaseModel]], part: str) -> list[type[BaseModel]]:
    """A union tag picks its model; a name chosen by the user (a parameter, an index) keeps them all."""
    for tag_name in ("type", "kind"):
        for model in models:
            field = model.model_fields.get(tag_name)
            if field is not None and part in get_args(field.annotation):
                return [model]
    return models


def _models_in(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and not isinstance(annotation, types.GenericAlias):
        if issubclass(annotation, BaseModel):
            yield annotation
        return
    if get_origin(annotation) in (Annotated, Union, types.UnionType, dict, tuple, list):
        for part in get_args(annotation):
            yield from _models_in(part)


def _with_code_folder(task: Task, source: Path) -> Task:
    folder = source.parent.resolve()
    named = task.job.code_source
    root = folder if named is None else (folder / Path(named.root_path).expanduser()).resolve()
    code = CodeSource(root_path=str(root)) if named is None else named.model_copy(update={"root_path": str(root)})
    if "snapshot" not in code.model_fields_set:
        code = code.model_copy(update={"snapshot": SnapshotMode.AUTO})  # A queued trial runs what was submitted.
    job = task.job.model_copy(update={"code_source": code})
    return task.model_copy(update={"job": job})


def _with_readable_folder(task: Task, source: Path) -> Task:
    if task.code is None:
        return task
    folder = source.parent.resolve()
    readable = tuple(str((folder / Path(one).expanduser()).absolute()) for one in task.code.readable)
    return task.model_copy(update={"code": task.code.model_copy(update={"readable": readable})})


def _with_private_folder(task: Task, source: Path) -> Task:
    if task.score is None:
        return task
    folder = source.parent.resolve()
    private = tuple(os.path.normpath(folder / Path(one).expanduser()) for one in task.score.private)
    return task.model_copy(update={"score": task.score.model_copy(update={"private": private})})


def _with_data_folder(task: Task, source: Path) -> Task:
    return task.model_copy(update={"data": data_in(source.parent.resolve(), task.data)})


def _with_address_folder(task: Task, source: Path) -> Task:
    """A session tells people from wherever its process is."""
    folder = source.parent.resolve()
    notify = tuple(
        one
        if one.url_file is None
        else one.model_copy(update={"url_file": str(folder / Path(one.url_file).expanduser())})
        for one in task.notify
    )
    return task.model_copy(update={"notify": notify})


def data_in(folder: Path, data: tuple[DataSource, ...]) -> tuple[DataSource, ...]:
    """Paths made absolute against the folder of the file that names them.

    A path that is a label's is taken as it is written: it may be an address.
    """
    return tuple(
        one
        if one.fingerprint == "label"
        else one.model_copy(update={"path": str((folder / Path(one.path).expanduser()).absolute())})
        for one in data
    )


def _with_key_folder(task: Task, source: Path) -> Task:
    if task.model is None or task.model.key_file is None:
        return task
    path = (source.parent.resolve() / Path(task.model.key_file).expanduser()).absolute()
    return task.model_copy(update={"model": task.model.model_copy(update={"key_file": str(path)})})


def _with_brief(task: Task, source: Path) -> tuple[Task, list[Problem]]:
    """The task with the text of its brief in the place of the file's name, and why it can not be read."""
    if task.brief is None:
        return task, []
    try:
        text = brief_text((source.parent.resolve() / Path(task.brief).expanduser()).absolute())
    except ValueError as error:
        return task, [Problem(path="brief", message=str(error))]
    return task.model_copy(update={"brief": text}), []
