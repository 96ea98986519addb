"""An edit of the training code, as text, applied to its files: strictly, or not at all. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from .blocks import is_in_blocks, read_blocks
from .form import LARGEST_BYTES, FileEdit, NotApplied
from .placing import patched
from .rules import EditRules
from .unified import is_diff, read_diff

_N_NAMED = 12


class _LineEnds(StrEnum):
    LF = "lf"
    """No line ends in CRLF."""
    CRLF = "crlf"
    """All do."""
    MIXED = "mixed"


def apply(text: str, sources: Mapping[str, bytes], rules: EditRules) -> dict[str, bytes]:
    """The changed and new files after an edit: search and replace blocks, or a unified diff, told apart by their form.

    Old lines have to be in the file exactly, and once. Where an edit has one kind of line ends throughout, as what
    carries text makes them, and a file has the other kind throughout, the edit's are taken as the file's.

    Raises:
        NotApplied: it can not be read, does not fit, may not touch what it touches, or changes nothing.
    """
    try:
        content = text.encode()
    except UnicodeEncodeError as error:
        raise NotApplied(f"the edit is no text: {error.reason} at character {error.start + 1}") from error
    if len(content) > LARGEST_BYTES or b"\0" in content:
        raise NotApplied("the edit is over 10 MB, or has NUL bytes in it; write it as text, of the changed lines alone")
    ends = _line_ends(content)
    changed: dict[str, bytes] = {}
    problems = []
    for edit in _read(content.replace(b"\r\n", b"\n") if ends is _LineEnds.CRLF else content, sources):
        try:
            _check_may(edit, sources, rules)
            changed[edit.path] = _patched(edit, sources.get(edit.path, b""), ends)
        except NotApplied as problem:
            problems.append(str(problem))
    if problems:
        raise NotApplied("\n".join(problems))
    changed = {path: after for path, after in changed.items() if sources.get(path) != after}
    if not changed:
        raise NotApplied("the edit changes nothing: every file would be as it is")
    return changed


def _read(content: bytes, sources: Mapping[str, bytes]) -> list[FileEdit]:
    lines = content.split(b"\n")
    if is_in_blocks(lines):
        return read_blocks(lines, sources)
    if is_diff(lines):
        return read_diff(lines, frozenset(sources))
    raise NotApplied(
        "there is no edit in this text: write blocks (`<<<< edit PATH`, old lines, `==== with`, new lines, `>>>> end`) "
        "or a unified diff (`--- a/PATH`, `+++ b/PATH`, `@@ -12,7 +12,8 @@`, lines)"
    )


def _check_may(edit: FileEdit, sources: Mapping[str, bytes], rules: EditRules) -> None:
    path = edit.path
    if not rules.is_editable(path):
        raise NotApplied(f"{path} may not be edited; editable: {', '.join(rules.editable)}")
    if edit.creates and path in sources:
        raise NotApplied(f"{path} is there already; edit it")
    if not edit.creates and path not in sources:
        named = ", ".join(sorted(sources)[:_N_NAMED])
        raise NotApplied(f"there is no file {path}; there are: {named}. A new one begins with `<<<< new {path}`")


def _patched(edit: FileEdit, source: bytes, ends: _LineEnds) -> bytes:
    if len(source) > LARGEST_BYTES:
        raise NotApplied(f"{edit.path} is over 10 MB; edits are for code")
    try:
        source.decode()
    except UnicodeDecodeError as error:
        raise NotApplied(f"{edit.path} is not UTF-8 (byte {error.start + 1}); it can not be edited") from error
    if b"\0" in source:
        raise NotApplied(f"{edit.path} is binary (it has NUL bytes); it can not be edited")
    # The edit's own line ends were made LF where they were all CRLF; so only a file that is all CRLF is another kind.
    if ends is not _LineEnds.MIXED and _line_ends(source) is _LineEnds.CRLF:
        return patched(edit.path, source.replace(b"\r\n", b"\n"), edit.spots).replace(b"\n", b"\r\n")
    return patched(edit.path, source, edit.spots)


def _line_ends(content: bytes) -> _LineEnds:
    n_crlf = content.count(b"\r\n")
    if n_crlf == 0:
        return _LineEnds.LF
    return _LineEnds.CRLF if n_crlf == content.count(b"\n") else _LineEnds.MIXED
