"""The fixed grammar of the chat: a line that begins with `/` is a tool and its arguments. No model is needed for it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from agent.chat.tool import ChatTool, Slash

HELP = "help"


class WrongUse(ValueError):
    """The message says how it is used."""


@dataclass(frozen=True, slots=True)
class Meant:
    tool: ChatTool
    arguments: BaseModel


def is_command(text: str) -> bool:
    return text.lstrip().startswith("/")


def meant(text: str, tools: Sequence[ChatTool]) -> Meant:
    """What a line with a slash asks for; a unique beginning of a name does.

    Raises:
        WrongUse: there is no such command, or its words do not fit.
    """
    name, words = _words(text)
    found = {one.slash.name: (one, one.slash) for one in tools if one.slash is not None}
    fitting = [name] if name in found else sorted(known for known in found if known.startswith(name))
    if len(fitting) != 1:
        which = f"it may be any of {', '.join('/' + one for one in fitting)}" if fitting else "there is no such command"
        raise WrongUse(f"/{name}: {which}; /help lists all")
    tool, slash = found[fitting[0]]
    try:
        return Meant(tool, tool.arguments.model_validate(slash.parse(words)))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise WrongUse(f"{place}: {first['msg']}; usage: {slash.usage}") from error
    except ValueError as error:
        raise WrongUse(f"{error}; usage: {slash.usage}") from error


def slashes(tools: Sequence[ChatTool]) -> list[Slash]:
    """All commands, by name."""
    return sorted((one.slash for one in tools if one.slash is not None), key=lambda slash: slash.name)


def help_text(text: str, tools: Sequence[ChatTool]) -> str | None:
    """The list of commands, or the usage of one; None: the line does not ask for help."""
    try:
        name, words = _words(text)
    except WrongUse:
        return None
    if name not in (HELP, ""):
        return None
    wanted = words[0].lstrip("/") if words else ""
    lines = [f"{one.usage}: {one.summary}" for one in slashes(tools) if one.name.startswith(wanted)]
    return "\n".join(lines) or f"there is no command /{wanted}; /help lists all"


def without_values(given: Sequence[str]) -> dict[str, Any]:
    """`Slash.parse` of a command that takes no words.

    Raises:
        ValueError: there are some.
    """
    if given:
        raise ValueError(f"it takes nothing, and {given[0]!r} is too much")
    return {}


def _words(text: str) -> tuple[str, list[str]]:
    try:
        first, *rest = shlex.split(text.strip()[1:]) or [""]
    except ValueError as error:
        raise WrongUse(f"a quotation mark is not closed ({error}); put a backslash before it to mean it") from error
    return first.lower(), rest
