"""Lines that a person or a script gives, and the plainest way to get them: standard input."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from nightlab.chat.following import Inbox

GOES_ON = "\\"
"""At the end of a line: there is another one."""

OnNews = Callable[[], bool]
"""Shows what has come; whether the line that is being typed is to be left for it."""


@dataclass(frozen=True, slots=True)
class Typed:
    text: str
    is_done: bool = True
    """False: something came meanwhile, and this is what was typed until then."""


class Lines(Protocol):
    has_person: bool
    """Somebody is there who can be asked."""

    def ask(self, prompt: str, *, draft: str, inbox: Inbox, on_news: OnNews, is_answer: bool) -> Typed:
        """
        Raises:
            EOFError: there is no more.
            KeyboardInterrupt: Ctrl-C.
        """
        ...


class PlainLines:
    """Lines of standard input; prompts, where a person is there, go where errors go, so that output can be piped."""

    def __init__(self) -> None:
        self.has_person = sys.stdin is not None and sys.stdin.isatty()
        if isinstance(sys.stdin, io.TextIOWrapper):
            sys.stdin.reconfigure(errors="replace")

    def ask(self, prompt: str, *, draft: str, inbox: Inbox, on_news: OnNews, is_answer: bool) -> Typed:
        lines: list[str] = []
        while True:
            if self.has_person:
                print(prompt if not lines else "... ", end="", flush=True, file=sys.stderr)
            line = sys.stdin.readline() if sys.stdin is not None else ""
            if not line:
                raise EOFError
            line = line.rstrip("\n")
            if not line.endswith(GOES_ON):
                return Typed("\n".join([*lines, line]))
            lines.append(line[: -len(GOES_ON)])
