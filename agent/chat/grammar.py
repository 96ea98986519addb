"""The fixed grammar of the chat: a line that begins with `/` is a tool and its arguments. No model is needed for it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ValidationError

from agent.chat.tool import ChatTool, Slash

HELP = "help"
MOST_CHARACTERS = 4_000
"""Of a command: a sentence of a hypothesis fits."""


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

    Where tools share a name, the first one that the words fit is meant.

    Raises:
        WrongUse: there is no such command, or its words do not fit.
    """
    if len(text) > MOST_CHARACTERS:
        raise WrongUse(f"{len(text)} characters are too many for a command; {MOST_CHARACTERS} are the most")
    name, words = _words(text)
    wrong = ""
    fitting = _fitting(name, tools)
    for tool, slash in fitting:
        try:
            return Meant(tool, tool.arguments.model_validate(slash.parse(words)))
        except ValidationError as error:
            first = error.errors()[0]
            wrong = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        except ValueError as error:
            wrong = str(error)
    raise WrongUse(f"{wrong}; usage: {', or '.join(slash.usage for _, slash in fitting)}")


def slashes(tools: Sequence[ChatTool]) -> list[Slash]:
    """All commands, by name."""
    return sorted((one.slash for one in tools if one.slash is not None), key=lambda slash: slash.name)


def help_text(text: str, tools: Sequence[ChatTool]) -> str | None:
    """The list of commands, or the usage of one; None: the line does not ask for help."""
    name, words = _words(text)
    if name not in (HELP, ""):
        return None
    wanted = words[0].lstrip("/").lower() if words else ""
    lines = [f"{one.usage}: {one.summary}" for one in slashes(tools) if one.name.startswith(wanted)]
    return "\n".join(lines) or f"there is no command /{wanted}; /help lists all"


def _fitting(name: str, tools: Sequence[ChatTool]) -> list[tuple[ChatTool, Slash]]:
    known = [(one, one.slash) for one in tools if one.slash is not None]
    exact = [one for one in known if one[1].name == name]
    if exact:
        return exact
    begun = [one for one in known if one[1].name.startswith(name)]
    names = sorted({slash.name for _, slash in begun})
    if len(names) == 1:
        return begun
    which = f"it may be any of {', '.join('/' + one for one in names)}" if names else "there is no such command"
    raise WrongUse(f"/{name}: {which}; /help lists all")


def _words(text: str) -> tuple[str, list[str]]:
    """As a shell parts them, but an apostrophe is a letter, so that sentences need no care."""
    line = text.strip().removeprefix("/")
    reader = shlex.shlex(line, posix=True)
    reader.whitespace_split, reader.commenters, reader.quotes, reader.escape = True, "", '"', ""
    try:
        first, *rest = list(reader) or [""]
    except ValueError:  # a quotation mark that is not closed is one
        first, *rest = line.split() or [""]
    return first.lower(), rest
