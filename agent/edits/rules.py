"""What an edit of the training code may touch: files and patterns of files, sizes. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

_NEVER = (".git", ".nightlab", "__pycache__")
"""Beginnings of names: such a file, or one in such a folder, steers git, a service that runs it, or us."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EditRules:
    """Paths are relative to the code's folder, with `/`. A pattern names a file, a folder (all below it), or files by
    `*` (within a folder), `**` (across folders), `?` and `[...]`."""

    editable: tuple[str, ...]
    private: tuple[str, ...] = ()
    """Neither editable nor in any checkout, also where `editable` names them."""
    max_changed_lines: int = 400
    """Of one trial against the base, added and removed ones together."""
    max_bytes: int = 1_000_000
    """Of one edited file."""

    def is_editable(self, path: str) -> bool:
        is_named = any(matches(path, pattern) for pattern in self.editable)
        return is_named and not self.is_private(path) and not any(part.startswith(_NEVER) for part in path.split("/"))

    def is_private(self, path: str) -> bool:
        return any(matches(path, pattern) for pattern in self.private)


def matches(path: str, pattern: str) -> bool:
    """Whether a pattern names a file, or a folder that it is in."""
    return _compiled(pattern).fullmatch(path) is not None


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    plain = pattern.removeprefix("./").rstrip("/")
    parts = re.findall(r"\*\*/|\*\*|\*|\?|\[!?\]?[^\]/]*\]|.", plain, re.DOTALL)
    try:
        return re.compile("".join(map(_translated, parts)) + "(?:/.*)?", re.DOTALL)
    except re.error:  # A range that is none, such as [z-a]: taken by its letters.
        return re.compile(re.escape(plain) + "(?:/.*)?", re.DOTALL)


def _translated(part: str) -> str:
    special = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    if part in special:
        return special[part]
    if len(part) > 2 and part[0] == "[":
        negated, inside = ("^/", part[2:-1]) if part[1] == "!" else ("", part[1:-1])
        escaped = re.escape(inside).replace("\\-", "-")
        return f"[{negated}{escaped}]"
    return re.escape(part)
