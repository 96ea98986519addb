"""From a job's spec to the argument vector that is executed. Pure.

`{name}` is replaced where `name` is a parameter, `seed`, `job_id`, `attempt`, `checkpoint_dir`, or in a task of an
array `index`. Everything else in
braces stays as it is: `${HOME}`, `{print $1}`, `{{name}}`, and `{word}` without a parameter of that name.

What a placeholder has used is not passed a second time by `args_style`. The seed is passed like a parameter named
`seed`, unless there is such a parameter.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from runtime.model.states import ExitReason
from runtime.node.launch_errors import CannotLaunch
from runtime_client.models import ArgsStyle, JobSpec

_PLACEHOLDER = re.compile(r"(?<![${])\{([A-Za-z_][A-Za-z0-9_.\-]*)\}(?!\})")
_SAFE_ANYWHERE = re.compile(r"[A-Za-z0-9_@%+=:,./\-]+")
_HYDRA_PLAIN = re.compile(r"[A-Za-z_/.][A-Za-z0-9_/.\-+@?|]*")
_HYDRA_WORDS = {"true", "false", "null", "inf", "nan"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    argv: tuple[str, ...]
    is_shell: bool
    """argv is `SHELL -c TEXT`."""


def passed_parameters(spec: JobSpec) -> dict[str, Any]:
    """The parameters as the job sees them: with the seed, unless it has a parameter of that name."""
    if spec.seed is None or "seed" in spec.parameters:
        return dict(spec.parameters)
    return {**spec.parameters, "seed": spec.seed}


def render(spec: JobSpec, *, hyperparameters: str, shell: str, places: Mapping[str, str]) -> Rendered:
    """Fill in the command and append the arguments.

    `hyperparameters` is the path of the YAML file, `shell` the shell for command text, `places` the further
    placeholders. Raises CannotLaunch(BAD_COMMAND) for a value that can not be put where its placeholder stands.
    """
    values = {**places, **{name: as_text(value) for name, value in passed_parameters(spec).items()}}
    used: set[str] = set()
    if isinstance(spec.command, str):
        text = _fill_shell_text(spec.command, values, used)
        appended = _arguments(spec, used, hyperparameters)
        if appended:
            text = f"{text.rstrip()} {shlex.join(appended)}"
        return Rendered(argv=(shell, "-c", text), is_shell=True)
    filled = [_fill(word, values, used) for word in spec.command]
    return Rendered(argv=(*filled, *_arguments(spec, used, hyperparameters)), is_shell=False)


def parameter_variables(spec: JobSpec) -> dict[str, str]:
    """Environment variables for `args_style: env`; empty for other styles."""
    if spec.args_style is not ArgsStyle.ENV:
        return {}
    flat = flatten(passed_parameters(spec), separator="__")
    return {_variable_name(name): as_text(value) for name, value in flat.items() if value is not None}


def flatten(parameters: Mapping[str, Any], *, separator: str) -> dict[str, Any]:
    """Nested maps as one, keys joined by the separator. An empty map stays as a value."""
    flat: dict[str, Any] = {}
    for name, value in parameters.items():
        if isinstance(value, Mapping) and value:
            below = flatten(value, separator=separator)
            flat.update({f"{name}{separator}{key}": item for key, item in below.items()})
        else:
            flat[name] = value
    return flat


def as_text(value: Any) -> str:
    """Strings as they are, everything else as JSON (`true`, `0.001`, `[1, 2]`, `null`)."""
    return value if isinstance(value, str) else json.dumps(value)


def _fill(word: str, values: Mapping[str, str], used: set[str]) -> str:
    def replace(match: re.Match[str]) -> str:
        name = match.group(1)
        if name not in values:
            return _leave(match)
        used.add(name)
        return values[name]

    return _PLACEHOLDER.sub(replace, word)


def _leave(match: re.Match[str]) -> str:
    if match.group(1) == "seed":
        raise CannotLaunch(
            ExitReason.BAD_COMMAND, "the command uses {seed}, but the job has no seed: give one, or write the number"
        )
    return match.group(0)


class _Quoting(Enum):
    NONE = ""
    SINGLE = "'"
    DOUBLE = '"'


def _fill_shell_text(text: str, values: Mapping[str, str], used: set[str]) -> str:
    parts: list[str] = []
    quoting, end = _Quoting.NONE, 0
    for match in _PLACEHOLDER.finditer(text):
        between = text[end : match.start()]
        quoting, end = _quoting_after(between, quoting), match.end()
        name = match.group(1)
        if name in values:
            used.add(name)
            parts += between, _quoted(name, values[name], quoting)
        else:
            parts += between, _leave(match)
    return "".join(parts) + text[end:]


def _quoting_after(text: str, quoting: _Quoting) -> _Quoting:
    """The quotes that are open after `text`, when `quoting` was open before it."""
    position = 0
    while position < len(text):
        character = text[position]
        if character == "\\" and quoting is not _Quoting.SINGLE:
            position += 1
        elif quoting is _Quoting.NONE and character in "'\"":
            quoting = _Quoting(character)
        elif character == quoting.value:
            quoting = _Quoting.NONE
        position += 1
    return quoting


def _quoted(name: str, value: str, quoting: _Quoting) -> str:
    """The value as one shell word, or as part of the quoted word around it. It can never be read as shell code."""
    if _SAFE_ANYWHERE.fullmatch(value):
        return value
    if quoting is _Quoting.NONE:
        return shlex.quote(value)
    # Inside quotes a command substitution may be open, so only what is harmless there too.
    if all(_SAFE_ANYWHERE.fullmatch(part) for part in value.split(" ") if part):
        return value
    raise CannotLaunch(
        ExitReason.BAD_COMMAND,
        f"the command has {{{name}}} inside quotes, and its value {value!r} has characters that are special there: "
        f"write {{{name}}} without quotes around it (it is quoted as needed)",
    )


def _arguments(spec: JobSpec, used: set[str], hyperparameters: str) -> list[str]:
    parameters = {name: value for name, value in passed_parameters(spec).items() if name not in used}
    match spec.args_style:
        case ArgsStyle.ARGPARSE:
            flat = flatten(parameters, separator=".")
            return [word for name, value in flat.items() for word in _argparse_words(name, value)]
        case ArgsStyle.HYDRA:
            return [f"{name}={_hydra_text(value)}" for name, value in flatten(parameters, separator=".").items()]
        case ArgsStyle.YAML:
            return ["--config", hyperparameters]
        case ArgsStyle.NONE | ArgsStyle.ENV:
            return []


def _argparse_words(name: str, value: Any) -> list[str]:
    if value is None or value is False:
        return []
    if value is True:
        return [f"--{name}"]
    if isinstance(value, list):
        return [f"--{name}", *(as_text(item) for item in value)]
    text = as_text(value)
    # `--name -x` would be read as two options.
    return [f"--{name}={text}"] if text.startswith("-") else [f"--{name}", text]


def _hydra_text(value: Any) -> str:
    """In the grammar of Hydra's overrides. Source: hydra.cc, "Extended Override syntax"."""
    if isinstance(value, list):
        return "[" + ",".join(_hydra_text(item) for item in value) + "]"
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{key}:{_hydra_text(item)}" for key, item in value.items()) + "}"
    if not isinstance(value, str):
        return json.dumps(value)
    if _HYDRA_PLAIN.fullmatch(value) and value.lower() not in _HYDRA_WORDS:
        return value
    escaped = re.sub(r"(\\+)(?='|$)", r"\1\1", value).replace("'", "\\'")
    return f"'{escaped}'"


def _variable_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]", "_", name).upper()
