"""A policy from a YAML file: the fields of `Policy` by name, classes by name with `priority` and `is_preemptible`."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import yaml

from runtime.scheduling.policy import Policy, PriorityClass

from .errors import BadTrace


def read_policy(path: Path) -> Policy:
    """
    Raises:
        BadTrace: no such file, no YAML, an unknown field, or a value of the wrong kind.
    """
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else " ".join(str(error).split())
        raise BadTrace(path, f"can not be read: {why}") from error
    if content is None:
        return Policy()
    if not isinstance(content, dict):
        raise BadTrace(path, "is no policy: it must be a map, such as `min_run_s: 60`")
    known = {field.name: field for field in fields(Policy)}
    found: dict[str, object] = {}
    for name, value in content.items():
        if name not in known:
            raise BadTrace(path, f"{name!r} is no part of a policy; there are: {', '.join(known)}")
        found[name] = _classes(path, value) if name == "classes" else _number(path, str(name), value)
    return Policy(**found)  # type: ignore[arg-type]


def _number(path: Path, name: str, value: object) -> float | int:
    is_whole = isinstance(getattr(Policy(), name), int)
    if isinstance(value, bool) or not isinstance(value, int if is_whole else (int, float)) or value < 0:
        kind = "a whole number" if is_whole else "a number"
        raise BadTrace(path, f"{name} is {value!r}; it must be {kind} that is not negative")
    return value if is_whole else float(value)


def _classes(path: Path, value: object) -> dict[str, PriorityClass]:
    if not isinstance(value, dict) or not value:
        raise BadTrace(path, "classes must be a map of names, such as `urgent: {priority: 10, is_preemptible: false}`")
    return {str(name): _class(path, str(name), traits) for name, traits in value.items()}


def _class(path: Path, name: str, traits: object) -> PriorityClass:
    if not isinstance(traits, dict) or set(traits) != {"priority", "is_preemptible"}:
        raise BadTrace(path, f"class {name} needs exactly `priority` and `is_preemptible`")
    priority, is_preemptible = traits["priority"], traits["is_preemptible"]
    if isinstance(priority, bool) or not isinstance(priority, int):
        raise BadTrace(path, f"priority of class {name} is {priority!r}; it must be a whole number")
    if not isinstance(is_preemptible, bool):
        raise BadTrace(path, f"is_preemptible of class {name} is {is_preemptible!r}; it must be true or false")
    return PriorityClass(name=name, priority=priority, is_preemptible=is_preemptible)
