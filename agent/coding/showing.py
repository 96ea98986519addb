"""Files of code as a model is shown them: whole where they fit, else around their definitions. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from agent.llm.counting import tokens_of
from agent.llm.untrusted import clean, fenced
from prompts import Fenced

_DEFINITION = re.compile(r"[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]")
_DECORATOR = re.compile(r"[ \t]*@")
_LINES = 20
"""Of a part of a file that has no definitions."""
_FRAME_TOKENS = 45
"""Of the two lines around a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    text: Fenced
    is_whole: bool
    """Nothing was left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    path: str
    lines: tuple[str, ...]

    @property
    def short(self) -> str:
        """Its first line alone, and how many were left out."""
        n_left = len(self.lines) - 1
        return self.lines[0] if n_left < 1 else f"{self.lines[0]}\n[... {n_left} lines left out ...]"

    @property
    def whole(self) -> str:
        return "\n".join(self.lines)


def shown(sources: Mapping[str, bytes], *, limit: int, turn: int) -> Shown | None:
    """All files within so many tokens; None: not even their definitions fit.

    Where parts have to be left out, each turn begins with another one, so that over several turns all are seen.
    """
    parts = [part for path in sorted(sources) for part in _parts(path, sources[path])]
    sizes = [(tokens_of(part.short), tokens_of(part.whole)) for part in parts]
    left = limit - _FRAME_TOKENS * len(sources) - sum(short for short, _ in sizes)
    if left < 0:
        return None
    whole: set[int] = set()
    for step in range(len(parts)):
        at = (turn + step) % len(parts)
        more = sizes[at][1] - sizes[at][0]
        if more <= left:
            whole.add(at)
            left -= more
    texts: dict[str, list[str]] = {path: [] for path in sorted(sources)}
    for at, part in enumerate(parts):
        texts[part.path].append(part.whole if at in whole else part.short)
    blocks = [_block(path, "\n".join(lines)) for path, lines in texts.items()]
    return Shown(text=Fenced("\n\n".join(blocks)), is_whole=len(whole) == len(parts))


def _block(path: str, text: str) -> Fenced:
    return fenced(text, label=f"file {path}", limit=max(len(text), 1))


def _parts(path: str, content: bytes) -> list[_Part]:
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return [_Part(path=path, lines=("(no text: it can not be edited)",))]
    lines = clean(text.removesuffix("\n")).split("\n")
    begins = sorted({0, *_beginnings(lines)})
    ends = [*begins[1:], len(lines)]
    return [_Part(path=path, lines=tuple(lines[begin:end])) for begin, end in zip(begins, ends, strict=True)]


def _beginnings(lines: list[str]) -> list[int]:
    """Lines at which definitions begin, with their decorators; where there are none, every so many lines."""
    found = []
    for at, line in enumerate(lines):
        if _DEFINITION.match(line):
            while at > 0 and _DECORATOR.match(lines[at - 1]):
                at -= 1
            found.append(at)
    return found or list(range(0, len(lines), _LINES))
