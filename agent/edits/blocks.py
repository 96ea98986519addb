"""Edits as search and replace blocks, in two forms. Pure.

Ours, in which a file is named where it begins and the markers can hardly be lines of code:

    <<<< edit model.py          <<<< new loss.py
    old lines                   lines
    ==== with                   >>>> end
    new lines
    >>>> end

The common one: a line with the path, then `<<<<<<< SEARCH`, old lines, `=======`, new lines, `>>>>>>> REPLACE`.
What is between blocks (words, fences of Markdown) is not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from .form import MOST_SPOTS, FileEdit, NotApplied, Spot, checked_path

_OURS = re.compile(rb"<<<< (edit|new) (\S.*?)\s*$")
_WITH, _END = b"==== with", b">>>> end"
_SEARCH, _DIVIDE, _REPLACE = b"<<<<<<< SEARCH", b"=======", b">>>>>>> REPLACE"
_FENCE = re.compile(rb"\s*(```|~~~)")
_PATH_LIKE = re.compile(rb"[^\s`*]*[./][^\s`*]*")


def is_in_blocks(lines: list[bytes]) -> bool:
    return any(_OURS.match(line) or line.rstrip() == _SEARCH for line in lines)


def read_blocks(lines: list[bytes], paths: Iterable[str]) -> list[FileEdit]:
    """The blocks, those of a file together, in the order of the text.

    Args:
        paths: what may be edited; where it is one file, blocks need not name it.

    Raises:
        NotApplied: a block is not whole, or names no file.
    """
    known = tuple(paths)
    spots: dict[str, list[Spot]] = {}
    created: set[str] = set()
    position, ended, before = 0, 0, None
    number = 0
    while position < len(lines):
        opened = _OURS.match(lines[position])
        if not opened and lines[position].rstrip() != _SEARCH:
            position += 1
            continue
        number += 1
        name = f"block {number}"
        if number > MOST_SPOTS:
            raise NotApplied(f"more than {MOST_SPOTS} blocks; write a larger change as fewer, larger blocks")
        if opened:
            path = checked_path(_decoded(opened[2]), name)
            is_new = opened[1] == b"new"
            old, new, position = _ours(lines, position, name, is_new=is_new)
        else:
            path = checked_path(_named(lines, ended, position, before, known, name), name)
            old, new, position = _common(lines, position, name)
            is_new = not old and path not in known
        if path in created or (is_new and path in spots):
            raise NotApplied(f"{name}: {path} is made by an earlier block; write it in one block")
        if is_new:
            created.add(path)
        elif old == new:
            raise NotApplied(f"{name} of {path}: its two sides are the same; it would change nothing")
        spots.setdefault(path, []).append(Spot(name=name, old=old, new=new))
        before, ended = path, position
    return [FileEdit(path=path, spots=tuple(found), creates=path in created) for path, found in spots.items()]


def _ours(
    lines: list[bytes], opened: int, name: str, *, is_new: bool
) -> tuple[tuple[bytes, ...], tuple[bytes, ...], int]:
    divided = opened if is_new else None
    for position in range(opened + 1, len(lines)):
        word = lines[position].rstrip()
        if word == _END:
            if divided is None:
                raise NotApplied(f"{name} has no line `==== with` between the old and the new lines")
            old = () if is_new else tuple(lines[opened + 1 : divided])
            return old, tuple(lines[divided + 1 : position]), position + 1
        if _OURS.match(lines[position]) or (word == _WITH and divided is not None):
            break
        if word == _WITH:
            divided = position
    raise NotApplied(f"{name} is not whole: end it by a line `>>>> end` before the next one begins")


def _common(lines: list[bytes], opened: int, name: str) -> tuple[tuple[bytes, ...], tuple[bytes, ...], int]:
    divided = None
    for position in range(opened + 1, len(lines)):
        word = lines[position].rstrip()
        if word == _REPLACE:
            if divided is None:
                raise NotApplied(f"{name} has no line `=======` between the old and the new lines")
            return tuple(lines[opened + 1 : divided]), tuple(lines[divided + 1 : position]), position + 1
        if word == _DIVIDE and divided is not None:
            raise NotApplied(
                f"{name} has two lines `=======`, so that its sides can not be told apart; write it as "
                "`<<<< edit PATH`, old lines, `==== with`, new lines, `>>>> end`"
            )
        if word == _DIVIDE:
            divided = position
        elif word == _SEARCH:
            break
    raise NotApplied(f"{name} is not whole: end it by a line `>>>>>>> REPLACE` before the next one begins")


def _named(lines: list[bytes], ended: int, opened: int, before: str | None, known: tuple[str, ...], name: str) -> str:
    """The path on the last line before a block that is neither empty nor a fence."""
    between = [line for line in lines[ended:opened] if line.strip() and not _FENCE.match(line)]
    if between:
        bare = between[-1].strip().strip(b"#*`: ").removeprefix(b"File:").removeprefix(b"file:").strip(b"*`: ")
        if _PATH_LIKE.fullmatch(bare) or _decoded(bare) in known:
            return _decoded(bare)
    elif before is not None:
        return before
    if len(known) == 1:
        return known[0]
    raise NotApplied(f"{name} names no file: write its path alone on the line before the block")


def _decoded(word: bytes) -> str:
    return word.decode(errors="surrogateescape")
