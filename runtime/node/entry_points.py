"""Which commands start a Python script that a warm start could run in their place. Pure, but for looking up programs.

Only plain ones: `python script.py ...`, `python -m module ...`, also as shell text without any shell syntax. All
others are started cold, and the reason says why.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from runtime.node.command import Rendered

_PYTHON = re.compile(r"python(3(\.\d+)?)?")
_PLAIN_TEXT = re.compile(r"(?:[A-Za-z0-9_@%+=:,./\- ]|'[^']*')+")
"""Shell text in which every character stands for itself."""


class NotWarm(Exception):
    """This start must be a cold one; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryPoint:
    program: str
    """The interpreter's absolute path, as a cold start would find it."""
    words: tuple[str, ...]
    """What follows it on the command line."""
    module: str | None
    """For `-m`; None: the first word is a script."""
    shell_env: Mapping[str, str]
    """What the shell would have added to the environment."""

    def script(self, folder: Path) -> Path | None:
        """The file that will be `__main__`, where it can be told without importing anything."""
        if self.module is None:
            return folder / self.words[0]
        place = folder.joinpath(*self.module.split("."))
        found = (place.with_suffix(".py"), place / "__main__.py")
        return next((path for path in found if path.is_file()), None)


def entry_point(rendered: Rendered, folder: Path, environment: Mapping[str, str]) -> EntryPoint:
    """Raises NotWarm."""
    words = _words(rendered)
    if not _PYTHON.fullmatch(os.path.basename(words[0])):
        raise NotWarm(f"{os.path.basename(words[0])!r} is no Python interpreter")
    program = _program(words[0], folder, environment)
    rest = list(words[1:])
    module = None
    if rest[:1] == ["-m"] and len(rest) > 1:
        module = rest[1]
    elif not rest or rest[0].startswith("-"):
        raise NotWarm("only `python SCRIPT` and `python -m MODULE` without options of Python start warm")
    elif not rest[0].endswith(".py") or not (folder / rest[0]).is_file():
        raise NotWarm(f"{rest[0]!r} is no Python file in the working directory")
    for name in ("PYTHONPATH", "PYTHONHOME"):
        if (
            any(not os.path.isabs(part) for part in environment[name].split(os.pathsep))
            if name in environment
            else False
        ):
            raise NotWarm(f"{name} holds a relative folder")
    return EntryPoint(
        program=program,
        words=tuple(rest),
        module=module,
        shell_env=_shell_additions(rendered, program, folder, environment),
    )


def _words(rendered: Rendered) -> Sequence[str]:
    if not rendered.is_shell:
        return rendered.argv
    text = rendered.argv[2].strip()
    if not _PLAIN_TEXT.fullmatch(text):
        raise NotWarm("the command uses the shell's syntax")
    words = shlex.split(text)
    if "=" in words[0]:
        raise NotWarm("the command sets variables for itself")
    return words


def _program(name: str, folder: Path, environment: Mapping[str, str]) -> str:
    found = str(folder / name) if "/" in name else shutil.which(name, path=environment["PATH"])
    if found is None or not os.path.isabs(found):
        raise NotWarm(f"{name!r} is not on PATH")
    try:
        with open(found, "rb") as file:
            is_script = file.read(2) == b"#!"
    except OSError as error:
        raise NotWarm(f"{found} can not be read: {error.strerror}") from error
    if is_script:
        raise NotWarm(f"{found} is a script that looks for the interpreter itself")
    return found


def _shell_additions(rendered: Rendered, program: str, folder: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Source: the manuals of bash and dash; a test compares with the shell at hand."""
    if not rendered.is_shell:
        return {}
    added = {"PWD": str(folder)}
    if os.path.basename(rendered.argv[0]) == "bash":
        added |= {"SHLVL": environment.get("SHLVL", "0"), "_": program}
    return added
