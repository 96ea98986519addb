"""Reading a task file: YAML to `Task`, every problem named by its path, with the value seen and what is allowed."""

from __future__ import annotations

import difflib
import re
import types
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from agent.task import CategoricalParameter, Task
from agent.trust_checks import trust_checks
from runtime_client.models import CodeSource, SnapshotMode

_SEED_NAMES = frozenset({"seed", "randomseed", "rngseed", "globalseed", "randomstate", "rngstate"})
"""Names of seeds in any spelling: `random_seed`, `random-state`, `RandomSeed`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    path: str
    """Dotted path in the file, `` (empty) for the whole."""
    message: str


class TaskError(Exception):
    """The task file can not be used; `problems` says what to change."""

    def __init__(self, source: Path, problems: list[Problem]) -> None:
        self.source = source
        self.problems = problems
        lines = [f"  {p.path + ': ' if p.path else ''}{p.message}" for p in problems]
        super().__init__(f"{source}: the task can not be used\n" + "\n".join(lines))


def load_task(path: Path) -> Task:
    """Read and check a task file; a relative code folder is resolved against the file's folder.

    Raises:
        TaskError: unreadable, not YAML, unknown keys, impossible values; all problems at once.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise TaskError(path, [Problem(path="", message=f"can not be read: {reason}")]) from error
    return parse_task(text, source=path)


def parse_task(text: str, *, source: Path) -> Task:
    """The same from text; `source` names the file in messages and gives the folder for relative paths.

    Raises:
        TaskError: as `load_task`.
    """
    data = _read_yaml(text, source)
    try:
        task = Task.model_validate(data)
    except ValidationError as error:
        raise TaskError(source, [_explain(detail, data) for detail in error.errors()]) from error
    task = _with_data_folder(_with_code_folder(task, source), source)
    problems = list(_cross_checks(task))
    if problems:
        raise TaskError(source, problems)
    return task


class _UniqueKeyLoader(yaml.SafeLoader):
    """PyYAML keeps the last of two equal keys in silence; here the second is an error."""


def _construct_mapping(loader: _UniqueKeyLoader, node: yaml.MappingNode) -> dict[Hashable, object]:
    loader.flatten_mapping(node)
    seen: dict[Hashable, object] = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, Hashable):
            raise yaml.constructor.ConstructorError(None, None, "a key must be a plain value", key_node.start_mark)
        if key in seen:
            raise yaml.constructor.ConstructorError(None, None, f"the key {key!r} is given twice", key_node.start_mark)
        seen[key] = loader.construct_object(value_node, deep=True)
    return seen


_UniqueKeyLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _construct_mapping)
# `1e-4` is a number in YAML 1.2 and to everybody who writes one; PyYAML, which has YAML 1.1, reads a text.
_UniqueKeyLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)[eE][-+]?[0-9]+\Z"),
    list("-+.0123456789"),
)


def _read_yaml(text: str, source: Path) -> dict[str, object]:
    try:
        data = yaml.load(text, Loader=_UniqueKeyLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
        what = getattr(error, "problem", None) or str(error)
        raise TaskError(source, [Problem(path="", message=f"not readable as YAML: {where}{what}")]) from error
    except (RecursionError, ValueError) as error:
        raise TaskError(source, [Problem(path="", message=f"not readable as YAML: {error}")]) from error
    if not isinstance(data, dict):
        seen = "is empty" if data is None else f"holds a {type(data).__name__}"
        needed = "a mapping with the keys task, objective, job, space, budgets is needed"
        raise TaskError(source, [Problem(path="", message=f"the file {seen}; {needed}")])
    return data


def _explain(detail: ErrorDetails, data: object) -> Problem:
    loc = tuple(part for part in detail["loc"] if part not in ("float", "int", "categorical") or _is_key(data, part))
    path = ".".join(str(part) for part in loc)
    match detail["type"]:
        case "extra_forbidden":
            allowed = _allowed_keys(detail["loc"][:-1])
            close = difflib.get_close_matches(str(loc[-1]), allowed, n=1, cutoff=0.5)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            return Problem(path=path, message=f"unknown key{hint} Allowed: {', '.join(allowed)}".replace("? A", "? a"))
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


def _is_key(data: object, name: object) -> bool:
    """Whether a part of an error's location that looks like a union tag is a name that the user wrote."""
    return isinstance(data, dict) and isinstance(data.get("space"), dict) and name in data["space"]


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _allowed_keys(loc: tuple[int | str, ...]) -> list[str]:
    """Keys of the model at a location of a validation error (union tags included)."""
    found: list[type[BaseModel]] = [Task]
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


def _with_data_folder(task: Task, source: Path) -> Task:
    """A path that is a label's is taken as it is written: it may be an address."""
    folder = source.parent.resolve()
    data = tuple(
        one
        if one.fingerprint == "label"
        else one.model_copy(update={"path": str((folder / Path(one.path).expanduser()).absolute())})
        for one in task.data
    )
    return task.model_copy(update={"data": data})


def _cross_checks(task: Task) -> Iterator[Problem]:
    root = task.job.code_source.root_path if task.job.code_source else ""
    if root and not Path(root).is_dir():
        yield Problem(path="job.code_source.root_path", message=f"{root} is not a folder")
    searched = sorted(task.space)
    for name in task.job.parameters:
        if name in task.space:
            yield Problem(path=f"job.parameters.{name}", message=f"is searched too (space.{name}); keep one of them")
    yield from _reach_checks(task)
    yield from _fidelity_checks(task, searched)
    if task.held_out is not None:
        for name in task.held_out.parameters:
            if name in task.space:
                what = "is searched; a held-out job runs the chosen configuration, so it may not change it"
                yield Problem(path=f"held_out.parameters.{name}", message=what)
        if task.held_out.metric == task.objective.metric:
            what = f"{task.held_out.metric!r} is the objective itself; a held-out metric must be another one"
            yield Problem(path="held_out.metric", message=what)
    for name, parameter in task.space.items():
        if isinstance(parameter, CategoricalParameter):
            yield from _choice_checks(name, parameter)
    yield from _seed_checks(task)
    yield from (Problem(path=path, message=what) for path, what in trust_checks(task))
    for field in ("search", "first_fresh"):
        value = getattr(task.seeds, field)
        if value + 4 * task.seeds.fresh >= 2**32:
            yield Problem(path=f"seeds.{field}", message=f"{value} is too large; seeds stay below 2**32")


def _seed_checks(task: Task) -> Iterator[Problem]:
    """The seed is nobody's to choose: searched, the luckiest wins; fixed, every replicate is the same run again."""
    for name in task.space:
        if re.sub(r"[\W_]", "", name.casefold()) in _SEED_NAMES:
            what = "the seed is set by nightlab (see seeds); searched, the luckiest would win: choose another name"
            yield Problem(path=f"space.{name}", message=what)
    fixed = "would fix the seed of every trial, so that replicates repeat one run; leave it out: nightlab sets it"
    if "seed" in task.job.parameters:
        yield Problem(path="job.parameters.seed", message=fixed)
    if task.held_out is not None and "seed" in task.held_out.parameters:
        yield Problem(path="held_out.parameters.seed", message=fixed)
    if task.fidelity is not None and task.fidelity.parameter == "seed":
        yield Problem(path="fidelity.parameter", message=fixed)


def _reach_checks(task: Task) -> Iterator[Problem]:
    """Parameters that would never reach the script: the search would compare a configuration with itself.

    `args_style: none`, written out, is taken at its word: the script reads the file at HYPERPARAMETERS_PATH.
    """
    if "args_style" in task.job.model_fields_set:
        return
    command = task.job.command if isinstance(task.job.command, str) else " ".join(task.job.command)
    names = [*task.space, *([task.fidelity.parameter] if task.fidelity else [])]
    lost = [name for name in names if f"{{{name}}}" not in command]
    if lost and "HYPERPARAMETERS_PATH" not in command:
        what = (
            f"is required: nothing passes {', '.join(lost)} to the command. `argparse` appends --{lost[0]} VALUE "
            f"(others: hydra, env, yaml); or write {{{lost[0]}}} in the command; or `none`, for a script that reads "
            "the file at HYPERPARAMETERS_PATH"
        )
        yield Problem(path="job.args_style", message=what)


def _fidelity_checks(task: Task, searched: list[str]) -> Iterator[Problem]:
    if task.fidelity is None:
        return
    name = task.fidelity.parameter
    if name in task.space:
        what = f"{name!r} is searched ({', '.join(searched)}); the fidelity parameter has one fixed value"
        yield Problem(path="fidelity.parameter", message=what)
    if name in task.job.parameters and task.job.parameters[name] != task.fidelity.value:
        what = f"{task.fidelity.value!r} contradicts job.parameters.{name}: {task.job.parameters[name]!r}"
        yield Problem(path="fidelity.value", message=what)


def _choice_checks(name: str, parameter: CategoricalParameter) -> Iterator[Problem]:
    seen: list[object] = []
    for choice in parameter.choices:
        if choice in seen:
            yield Problem(path=f"space.{name}.choices", message=f"{choice!r} is given twice (or equals another choice)")
        seen.append(choice)
