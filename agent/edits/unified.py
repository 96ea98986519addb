"""Edits as unified diffs, of git or of hand. Pure.

What the heads of hunks count is taken where it fits the lines that follow, else the lines themselves say it: models
count badly. Nothing else is forgiven.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .form import MOST_SPOTS, FileEdit, NotApplied, Spot, checked_path

_HEAD = re.compile(rb"@@(?: -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))?)? @@")
_LOOSE_HEAD = re.compile(rb"@@")
_FENCE = re.compile(rb"(`{3,}|~{3,})(.*)$")
_REFUSED = (
    (rb"rename (from|to) |copy (from|to) |similarity index ", "a file can not be renamed or copied; write it as new"),
    (rb"deleted file mode ", "a file can not be deleted; edit what uses it, or leave it empty"),
    (rb"(old|new) mode ", "the mode of a file can not be changed"),
    (rb"new file mode (?!100644)", "a new file is a plain one (mode 100644), no link, program or submodule"),
    (rb"GIT binary patch|Binary files ", "binary files can not be edited"),
)
_HEADER = re.compile(rb"index [0-9a-f]|new file mode 100644")
_ESCAPES = {"n": 10, "t": 9, "r": 13, '"': 34, "\\": 92, "a": 7, "b": 8, "f": 12, "v": 11}


def is_diff(lines: list[bytes]) -> bool:
    has_hunk = any(_LOOSE_HEAD.match(line) for line in lines)
    return any(line.startswith(b"diff --git ") for line in lines) or (
        has_hunk and any(line.startswith(b"+++ ") for line in lines)
    )


def read_diff(lines: list[bytes], paths: frozenset[str]) -> list[FileEdit]:
    """The hunks of each file. Raises NotApplied."""
    reader = _Reader(lines=_fenced(lines), paths=paths)
    found = reader.read()
    names = [edit.path for edit in found]
    twice = next((path for path in names if names.count(path) > 1), None)
    if twice is not None:
        raise NotApplied(f"the diff has two parts for {twice}; put all hunks of a file below one pair of ---/+++ lines")
    return found


def _fenced(lines: list[bytes]) -> list[bytes]:
    """What is in fences of Markdown that have a diff in them; all lines where there are none."""
    inside: list[bytes] = []
    position = 0
    while position < len(lines):
        opened = _FENCE.match(lines[position])
        position += 1
        if not opened:
            continue
        first = position
        while position < len(lines):
            closing = _FENCE.match(lines[position])
            if closing and closing[1].startswith(opened[1]) and not closing[2].strip():
                break
            position += 1
        if is_diff(lines[first:position]):
            inside += lines[first:position]
        position += 1
    return inside or lines


@dataclass(slots=True, kw_only=True)
class _Reader:
    lines: list[bytes]
    paths: frozenset[str]
    at: int = 0
    n_hunks: int = 0

    def read(self) -> list[FileEdit]:
        found: list[FileEdit] = []
        is_git = False
        while self.at < len(self.lines):
            line = self.lines[self.at].rstrip(b"\r")
            if line.startswith(b"diff --git "):
                is_git = True
                self.at += 1
                self._git_headers()
            elif self._is_pair():
                found.append(self._file(is_git=is_git))
            elif _LOOSE_HEAD.match(line):
                raise NotApplied(f"line {self.at + 1} of the diff: a hunk without `--- PATH` and `+++ PATH` before it")
            elif found and line[:1] in (b"+", b"-") and line.strip(b"+- "):
                raise NotApplied(
                    f"line {self.at + 1} of the diff ({_shown(line)}) is in no hunk; a context line before it may lack "
                    "its leading space"
                )
            else:
                self.at += 1
        return found

    def _git_headers(self) -> None:
        while self.at < len(self.lines) and not self._is_pair():
            line = self.lines[self.at].rstrip(b"\r")
            for pattern, why in _REFUSED:
                if re.match(pattern, line):
                    raise NotApplied(f"line {self.at + 1} of the diff ({_shown(line)}): {why}")
            if not _HEADER.match(line):
                return
            self.at += 1

    def _is_pair(self) -> bool:
        return self._is_pair_at(self.at)

    def _file(self, *, is_git: bool) -> FileEdit:
        old, new = (_path(line) for line in self.lines[self.at : self.at + 2])
        self.at += 2
        if new == "/dev/null":
            raise NotApplied(f"{old}: a file can not be deleted; edit what uses it, or leave it empty")
        path = self._chosen(old, new, is_git=is_git)
        spots: list[Spot] = []
        while self.at < len(self.lines) and _LOOSE_HEAD.match(self.lines[self.at]):
            self.n_hunks += 1
            if self.n_hunks > MOST_SPOTS:
                raise NotApplied(f"more than {MOST_SPOTS} hunks; write a larger change as fewer, larger hunks")
            spots.append(self._hunk(path, len(spots) + 1))
        if not spots:
            raise NotApplied(f"{path}: no hunk (@@ ... @@) follows its ---/+++ lines")
        creates = path not in self.paths and (old == "/dev/null" or not any(spot.old for spot in spots))
        if old == "/dev/null" and path in self.paths:
            raise NotApplied(f"{path} is there already; write the diff against it, not against /dev/null")
        return FileEdit(path=path, spots=tuple(spots), creates=creates)

    def _chosen(self, old: str, new: str, *, is_git: bool) -> str:
        """The path that both sides mean, with the `a/` and `b/` of git or without."""
        is_created = old == "/dev/null"
        has_prefixes = new.startswith("b/") and (is_created or old.startswith("a/"))
        stripped = new[2:]
        if has_prefixes and (is_git or new not in self.paths):
            old, new = old if is_created else old[2:], stripped
        elif has_prefixes and stripped in self.paths:
            raise NotApplied(
                f"{new} may mean {new} or {stripped}, and both are there; write a `diff --git` line before"
            )
        if not is_created and old != new:
            raise NotApplied(f"the two sides name two files, {old} and {new}: a file can not be renamed")
        return checked_path(new, "the diff")

    def _hunk(self, path: str, number: int) -> Spot:
        name = f"hunk {number}"
        head = self.lines[self.at]
        numbers = _HEAD.match(head)
        if numbers is None and head.rstrip() not in (b"@@", b"@@ @@", b"@@ ... @@"):
            raise NotApplied(f"{path}, {name}: {_shown(head)} is no head of a hunk; write it like @@ -12,7 +12,8 @@")
        self.at += 1
        counted = None if numbers is None or numbers[1] is None else _counts(numbers)
        last = None if counted is None else self._end_by_counts(*counted)
        body = self.lines[self.at : last if last is not None else self._end_by_signs(path, name)]
        self.at += len(body)
        line = int(numbers[1]) if numbers is not None and numbers[1] is not None else None
        return _spot(path, name, _without_trailing_blanks(body) if last is None else body, line)

    def _end_by_counts(self, n_old: int, n_new: int) -> int | None:
        """None: the counts do not fit what follows."""
        position = self.at
        while n_old > 0 or n_new > 0:
            if position == len(self.lines):
                return None
            sign = self.lines[position][:1]
            if sign in (b" ", b"", b"\r"):
                n_old, n_new = n_old - 1, n_new - 1
            elif sign == b"-":
                n_old -= 1
            elif sign == b"+":
                n_new -= 1
            elif sign != b"\\":
                return None
            position += 1
        if n_old < 0 or n_new < 0:
            return None
        while position < len(self.lines) and self.lines[position].startswith(b"\\"):
            position += 1
        return position if position == len(self.lines) or self._may_follow(position) else None

    def _may_follow(self, position: int) -> bool:
        line = self.lines[position]
        is_next = _LOOSE_HEAD.match(line) or line.startswith(b"diff --git ") or self._is_pair_at(position)
        return bool(is_next) or line[:1] not in (b" ", b"+", b"-") or line.rstrip() == b"--"

    def _is_pair_at(self, position: int) -> bool:
        rest = self.lines[position : position + 2]
        return len(rest) == 2 and rest[0].startswith(b"--- ") and rest[1].startswith(b"+++ ")

    def _end_by_signs(self, path: str, name: str) -> int:
        position = self.at
        while position < len(self.lines):
            line = self.lines[position]
            if _LOOSE_HEAD.match(line) or line.startswith(b"diff --git ") or self._is_pair_at(position):
                break
            if line[:1] not in (b" ", b"+", b"-", b"\\", b"", b"\r"):
                if self.lines[position - 1].strip():
                    raise NotApplied(
                        f"{path}, {name}: line {position + 1} of the diff ({_shown(line)}) begins with none of space, "
                        "+ and -; a context line begins with a space"
                    )
                break
            position += 1
        return position


def _counts(numbers: re.Match[bytes]) -> tuple[int, int]:
    return int(numbers[2] or 1), int(numbers[4] or 1)


def _without_trailing_blanks(body: list[bytes]) -> list[bytes]:
    end = len(body)
    while end and not body[end - 1].strip() and not body[end - 1].startswith(b" "):
        end -= 1
    return body[:end]


def _spot(path: str, name: str, body: list[bytes], line: int | None) -> Spot:
    old: list[bytes] = []
    new: list[bytes] = []
    is_old_bare = is_new_bare = False
    last = b""
    for one in body:
        sign, content = one[:1], one[1:]
        if sign in (b"", b"\r"):
            sign, content = b" ", one
        if sign == b"\\":
            is_old_bare = is_old_bare or last in (b" ", b"-")
            is_new_bare = is_new_bare or last in (b" ", b"+")
            continue
        last = sign
        if sign != b"+":
            old.append(content)
        if sign != b"-":
            new.append(content)
    if not any(one[:1] in (b"+", b"-") for one in body):
        raise NotApplied(f"{path}, {name} has neither + nor - lines; it would change nothing")
    return Spot(name=name, old=tuple(old), new=tuple(new), line=line, is_old_bare=is_old_bare, is_new_bare=is_new_bare)


def _path(line: bytes) -> str:
    word = line[4:].rstrip(b"\r")
    if word.startswith(b'"'):
        return _unquoted(word[1 : word.rfind(b'"')])
    return word.partition(b"\t")[0].rstrip().decode(errors="surrogateescape")


def _unquoted(word: bytes) -> str:
    """Git quotes paths with unusual bytes as C does."""

    def byte(found: re.Match[str]) -> str:
        code = int(found[1], 8) if found[1][0].isdigit() else _ESCAPES.get(found[1], ord(found[1]))
        return chr(code & 0xFF)

    plain = re.sub(r"\\([0-7]{3}|.)", byte, word.decode("latin-1"))
    return plain.encode("latin-1").decode(errors="surrogateescape")


def _shown(line: bytes) -> str:
    text = line.decode(errors="replace").rstrip("\r")
    return repr(text if len(text) <= 80 else f"{text[:77]}...")
