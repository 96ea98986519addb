"""The line of a log that tells why a command ended. Pure: the text and the patterns are passed in.

A pattern either looks at every line, or at the exception that ended the program alone: a library that prints
"No module named 'apex'" and goes on has not failed for it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from .errors import BadPayload
from .states import ExitReason

MAX_LINE = 500
"""Characters kept of a line of evidence."""

_RANK_PREFIX = re.compile(r"^\[(?:rank|default)?(\d+)\]:\s?")
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""What moves a cursor, rings, or turns the direction of writing: nothing that a line of evidence may do."""
_TRACEBACK = "Traceback (most recent call last):"
_EXCEPTION = re.compile(r"^[A-Za-z_][\w.]*(?::|$)")
_FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+)(?:, in (?P<function>.+))?')
_INSTALLED = re.compile(r"(site|dist)-packages/|/lib(64)?/python\d|^<|\.(pyx|pxi)$")
"""Files of libraries and of Python itself."""
_GROUP = re.compile(r"^\s+[|+](-\+)?( |(?=-))")
"""How Python sets in the exceptions of a group."""
_CAUSE = "The above exception was the direct cause of the following exception:"
_HANDLING = "During handling of the above exception, another exception occurred:"


class Where(StrEnum):
    ANYWHERE = "anywhere"
    """In any line; the last one that matches counts."""
    EXCEPTION = "exception"
    """In the line of the exception that ended the program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExitPattern:
    reason: ExitReason
    where: Where
    regex: re.Pattern[str]
    is_cascade: bool = False
    """What it recognizes follows from another failure; it counts where nothing else is found."""
    examples: tuple[str, ...]
    """Lines it must match; tested."""
    counterexamples: tuple[str, ...] = ()
    """Lines it must not match; tested."""


class Found(NamedTuple):
    reason: ExitReason
    line: str
    place: str | None = None
    """`train.py:33`, of an exception; None: the line came without a traceback."""


class Thrown(NamedTuple):
    """An exception that a traceback ended with."""

    line: str
    place: str | None
    at: int = 0
    """Index of that line."""
    came_from: Thrown | None = None
    """What it was raised for, so that this one only passes it on; None: it is the root."""

    @property
    def chain(self) -> tuple[Thrown, ...]:
        """It and what it came from, the root last."""
        found = [self]
        while found[-1].came_from is not None:
            found.append(found[-1].came_from)
        return tuple(found)


class Cleaned(NamedTuple):
    """Lines as a person sees them, and the exceptions among them, the last one last."""

    lines: tuple[str, ...]
    exceptions: tuple[Thrown, ...]

    @classmethod
    def of(cls, lines: Sequence[str]) -> Cleaned:
        return cls(tuple(lines), _exceptions(lines))


NOTHING = Cleaned((), ())


def parse_patterns(text: str) -> tuple[ExitPattern, ...]:
    """The patterns of a TOML text with an array `pattern`, in order: earlier ones win.

    Raises:
        BadPayload: not TOML, an unknown reason or key, or a regular expression that can not be compiled.
    """
    try:
        entries = tomllib.loads(text)["pattern"]
    except (tomllib.TOMLDecodeError, KeyError) as error:
        raise BadPayload(path="exit patterns", why=f"not a TOML text with [[pattern]] entries: {error}") from error
    return tuple(_parse(entry, f"pattern[{n}]") for n, entry in enumerate(entries))


def _parse(entry: dict[str, object], path: str) -> ExitPattern:
    unknown = set(entry) - {"reason", "where", "regex", "cascade", "examples", "counterexamples"}
    if unknown:
        raise BadPayload(path=path, why=f"unknown {', '.join(sorted(unknown))}")
    try:
        return ExitPattern(
            reason=ExitReason(str(entry["reason"])),
            where=Where(str(entry.get("where", Where.ANYWHERE))),
            regex=re.compile(str(entry["regex"])),
            is_cascade=entry.get("cascade", False) is True,
            examples=_lines(entry.get("examples")),
            counterexamples=_lines(entry.get("counterexamples")),
        )
    except (KeyError, ValueError, re.error) as error:
        raise BadPayload(path=path, why=str(error)) from error


def _lines(value: object) -> tuple[str, ...]:
    return tuple(str(line) for line in value) if isinstance(value, list) else ()


def find_pattern(log: str, patterns: tuple[ExitPattern, ...]) -> Found | None:
    """The first pattern that the log matches, with the line; None: none does."""
    return find_in(cleaned(log), patterns, patterns)


def find_in(of: Cleaned, wanted: tuple[ExitPattern, ...], known: tuple[ExitPattern, ...]) -> Found | None:
    """The first of the `wanted` patterns that these lines match; `known` tells which exceptions are cascades."""
    exception = thrown(of, known)
    for pattern in wanted:
        if pattern.where is Where.EXCEPTION:
            chain = exception.chain if exception is not None else ()
            said = next((each for each in chain if pattern.regex.search(each.line)), None)
            if said is not None:
                return Found(pattern.reason, shortened(said.line), said.place)
            continue
        line = next((line for line in reversed(of.lines) if pattern.regex.search(line)), None)
        if line is not None:
            place = exception.place if exception is not None and exception.line == line else None
            return Found(pattern.reason, shortened(line), place)
    return None


def thrown(of: Cleaned, known: tuple[ExitPattern, ...]) -> Thrown | None:
    """The exception that ended the program: the last one, or the one below it where the last is a cascade of it."""
    own = (each for each in reversed(of.exceptions) if not is_cascade(each.line, known))
    return next(own, of.exceptions[-1] if of.exceptions else None)


def is_cascade(line: str, known: tuple[ExitPattern, ...]) -> bool:
    """Whether a line reports that something else failed."""
    return any(pattern.is_cascade and pattern.regex.search(line) for pattern in known)


def last_line(log: str) -> str | None:
    """The exception that ended the program, else the last line that says something; None: it said nothing."""
    of = cleaned(log)
    line = of.exceptions[-1].line if of.exceptions else of.lines[-1] if of.lines else None
    return shortened(line) if line else None


def cleaned(log: str) -> Cleaned:
    """Lines without colors, control characters, rank prefixes; of a progress bar, the last state."""
    return Cleaned.of([line for _, line in ranked_lines(log)])


def ranked_lines(log: str) -> Iterator[tuple[int | None, str]]:
    """The lines of a log, each with the rank that its prefix names."""
    for raw in log.split("\n"):
        line = _CONTROL.sub("", raw.rstrip("\r").rsplit("\r", 1)[-1])
        prefix = _RANK_PREFIX.match(line)
        rank = None
        while prefix is not None:  # torchrun puts its own before that of torch
            rank = int(prefix[1])
            line = line[prefix.end() :]
            prefix = _RANK_PREFIX.match(line)
        if line.rstrip():
            yield rank, line.rstrip()


class _Frame(NamedTuple):
    file: str
    function: str | None
    number: str
    source: str
    """The line of code as the traceback shows it; empty: it does not."""

    @property
    def place(self) -> str:
        return f"{self.file.rpartition('/')[2]}:{self.number}"


class _Traceback(NamedTuple):
    start: int
    end: int
    """Index of the exception's line."""
    frames: tuple[_Frame, ...]


def _exceptions(lines: Sequence[str]) -> tuple[Thrown, ...]:
    """The exception line under each Python traceback, with the innermost frame before it, and what it came from."""
    lines = [_GROUP.sub("", line) for line in lines]
    found: list[Thrown] = []
    before: _Traceback | None = None
    for start, line in enumerate(lines):
        if not line.endswith(_TRACEBACK):
            continue
        read = _traceback(lines, start)
        if read is None:
            continue
        passes_on = before is not None and _passes_on(lines, before, read)
        found.append(
            Thrown(
                line=lines[read.end],
                place=_place(read.frames),
                at=read.end,
                came_from=found[-1] if passes_on else None,
            )
        )
        before = read
    return tuple(found)


def _traceback(lines: Sequence[str], start: int) -> _Traceback | None:
    frames: list[_Frame] = []
    for at in range(start + 1, len(lines)):
        line = lines[at]
        frame = _FRAME.match(line)
        if frame is not None:
            source = lines[at + 1].strip() if at + 1 < len(lines) else ""
            frames.append(_Frame(frame["file"], frame["function"], frame["line"], source))
        elif _EXCEPTION.match(line):
            return _Traceback(start, at, tuple(frames))
        elif line.endswith(_TRACEBACK):
            return None
    return None


def _place(frames: Sequence[_Frame]) -> str | None:
    """The innermost line of the job's own code: the one to look at first. None: there are no lines."""
    own = [frame for frame in frames if not _INSTALLED.search(frame.file)]
    innermost = (own or frames)[-1:]
    return innermost[0].place if innermost else None


def _passes_on(lines: Sequence[str], before: _Traceback, after: _Traceback) -> bool:
    """Whether an exception was raised to tell of the one before it.

    Python says so where it was raised `from` that one. Else it was raised while that one was handled: by a `raise` of
    the function that had tried, it tells of it; by anything else, it is a failure of its own.
    """
    between = [line for line in lines[before.end + 1 : after.start] if line.endswith(("exception:", "occurred:"))]
    if _CAUSE in between:
        return True
    if _HANDLING not in between or not before.frames or not after.frames:
        return False
    last = after.frames[-1]
    tried = {(frame.file, frame.function) for frame in before.frames}
    return (last.file, last.function) in tried and last.source.startswith("raise")


def shortened(line: str) -> str:
    return line if len(line) <= MAX_LINE else line[: MAX_LINE - 1] + "…"
