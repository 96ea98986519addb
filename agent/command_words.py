"""The words of a command, as a shell would part them."""

from __future__ import annotations

import shlex


def command_words(command: str | tuple[str, ...]) -> list[str]:
    """Of a text that a shell could not part, what stands between blanks."""
    if not isinstance(command, str):
        return list(command)
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()
