"""The tools of the chat as a model sees them, as far as they fit into its window. Pure."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel

from agent.chat.tool import ChatTool
from agent.llm.chat import Tool
from agent.llm.counting import tokens_of
from agent.llm.shape import schema_of

_PER_TOOL = 8
_SAID_OF_FIELDS = frozenset(
    {"description", "additionalProperties", "minimum", "maximum", "minLength", "maxLength", "pattern"}
)
"""What a small window has no room for; arguments are checked by the full shape all the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolbox:
    tools: tuple[Tool, ...] = ()
    left_out: tuple[str, ...] = ()
    """Names of those that do not fit."""

    @property
    def tokens(self) -> int:
        """About how many they have."""
        return sum(map(_tokens, self.tools))

    def has(self, name: str) -> bool:
        return any(one.name == name for one in self.tools)


def toolbox(tools: Sequence[ChatTool], room_tokens: int) -> Toolbox:
    """All in full where they fit, else all in short, else the first ones in short."""
    full = Toolbox(tools=tuple(_seen(one, is_short=False) for one in tools))
    if full.tokens <= room_tokens:
        return full
    short = [_seen(one, is_short=True) for one in tools]
    n, used = 0, 0
    while n < len(short) and used + _tokens(short[n]) <= room_tokens:
        used += _tokens(short[n])
        n += 1
    return Toolbox(tools=tuple(short[:n]), left_out=tuple(one.name for one in short[n:]))


def _seen(tool: ChatTool, *, is_short: bool) -> Tool:
    return Tool(name=tool.name, description=tool.description, parameters=_schema(tool.arguments, is_short=is_short))


@functools.cache
def _schema(arguments: type[BaseModel], *, is_short: bool) -> dict[str, object]:
    schema = schema_of(arguments)
    short = _short(schema) if is_short else schema
    assert isinstance(short, dict)
    return short


def _short(node: object) -> object:
    """Names, types and choices alone; what may be null may be left out as well."""
    if isinstance(node, list):
        return [_short(one) for one in node]
    if not isinstance(node, dict):
        return node
    others = [one for one in node.get("anyOf", ()) if one != {"type": "null"}]
    if len(others) == 1:
        return _short(others[0])
    properties = node.get("properties")
    short = {key: _short(value) for key, value in node.items() if key not in _SAID_OF_FIELDS and key != "properties"}
    if isinstance(properties, dict):  # Names of fields, which may be `description`.
        short["properties"] = {name: _short(value) for name, value in properties.items()}
    return short


def _tokens(tool: Tool) -> int:
    return _PER_TOOL + tokens_of(f"{tool.name} {tool.description} {json.dumps(tool.parameters)}")
