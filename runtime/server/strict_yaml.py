"""YAML as a person means it: a key twice is an error, `3e-4` is a number. Imports nothing of ours."""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import Any

import yaml


class NotYaml(ValueError):
    """The text is no valid YAML; the message says where and why."""


class _UniqueKeys(yaml.SafeLoader):
    """Refuses a key that is given twice, of which PyYAML would keep the last in silence."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        self.flatten_mapping(node)
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for index, key in enumerate(keys):
            if key in keys[:index]:
                mark = node.value[index][0].start_mark
                raise yaml.constructor.ConstructorError(None, None, f"the key {key!r} is given twice", mark)
        return super().construct_mapping(node, deep=deep)


# `3e-4` is a number in YAML 1.2 and to everybody who writes one; PyYAML, which has YAML 1.1, reads a text.
_UniqueKeys.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)[eE][-+]?[0-9]+\Z"),
    list("-+.0123456789"),
)


def load(content: str | bytes) -> Any:
    """What a YAML text holds.

    Raises:
        NotYaml: it is none.
    """
    try:
        return yaml.load(content, Loader=_UniqueKeys)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
        what = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise NotYaml(f"no valid YAML: {where}{what}") from error
