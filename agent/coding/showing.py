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
"""Of a part at most."""
_GAP_TOKENS = 14
"""Of the line that says how many are left out."""
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
    n_head: int
    """So many first lines are shown in any case: they say what the part is."""

    @property
    def head(self) -> tuple[str, ...]:
        return self.lines[: self.n_head]


def shown(sources: Mapping[str, bytes], *, limit: int, turn: int) -> Shown | None:
    """All files within so many tokens; None: not even their definitions fit.

    Where parts have to be left out, each turn begins with another one, so that over several turns all are seen.
    """
    parts = [part for path in sorted(sources) for part in _parts(path, sources[path])]
    short = [tokens_of("\n".join(part.head)) + _GAP_TOKENS for part in parts]
    more = [tokens_of("\n".join(part.lines)) - size for part, size in zip(parts, short, strict=True)]
    left = limit - _FRAME_TOKENS * len(sources) - sum(short)
    whole: set[int] = set()
    for step in range(len(parts)):
        at = (turn + step) % len(parts)
        if more[at] <= left:
            whole.add(at)
            left -= more[at]
    if left < 0:
        return None
    texts = {
        path: _text([(p, at in whole) for at, p in enumerate(parts) if p.path == path]) for path in sorted(sources)
    }
    blocks = [_block(path, text) for path, text in texts.items()]
    return Shown(text=Fenced("\n\n".join(blocks)), is_whole=len(whole) == len(parts))


def _text(parts: list[tuple[_Part, bool]]) -> str:
    """Parts one after the other; of those that are not whole, how many lines are left out in a row."""
    lines: list[str] = []
    n_left = 0
    for part, is_whole in parts:
        seen = part.lines if is_whole else part.head
        if seen and n_left:
            lines.append(_gap(n_left))
            n_left = 0
        lines += seen
        n_left += len(part.lines) - len(seen)
    return "\n".join([*lines, *([_gap(n_left)] if n_left else [])])


def _gap(n_lines: int) -> str:
    return f"[... {n_lines} lines left out ...]"


def _block(path: str, text: str) -> Fenced:
    return fenced(text, label=f"file {path}", limit=max(len(text), 1))


def _parts(path: str, content: bytes) -> list[_Part]:
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return [_Part(path=path, lines=("(no text: it can not be edited)",), n_head=1)]
    lines = clean(text.removesuffix("\n")).split("\n")
    heads = _heads(lines)
    begins = sorted({0, *heads})
    found = []
    for begin, end in zip(begins, [*begins[1:], len(lines)], strict=True):
        for at in range(begin, end, _LINES):
            piece = tuple(lines[at : min(at + _LINES, end)])
            found.append(_Part(path=path, lines=piece, n_head=heads.get(at, 0)))
    return found


def _heads(lines: list[str]) -> dict[int, int]:
    """Where definitions begin, and how many lines that takes with their decorators."""
    found = {}
    for at, line in enumerate(lines):
        if _DEFINITION.match(line):
            first = at
            while first > 0 and _DECORATOR.match(lines[first - 1]):
                first -= 1
            found[first] = at - first + 1
    return found
