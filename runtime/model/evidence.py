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
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")
_TRACEBACK = "Traceback (most recent call last):"
_EXCEPTION = re.compile(r"^[A-Za-z_][\w.]*(?::|$)")
_FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+)')


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
            if exception is not None and pattern.regex.search(exception.line):
                return Found(pattern.reason, shortened(exception.line), exception.place)
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


def _exceptions(lines: Sequence[str]) -> tuple[Thrown, ...]:
    """The exception line under each Python traceback, with the innermost frame before it."""
    found = []
    for start, line in enumerate(lines):
        if not line.endswith(_TRACEBACK):
            continue
        place = None
        for below in lines[start + 1 :]:
            frame = _FRAME.match(below)
            if frame is not None:
                place = f"{frame['file'].rpartition('/')[2]}:{frame['line']}"
            elif _EXCEPTION.match(below):
                found.append(Thrown(below, place))
                break
    return tuple(found)


def shortened(line: str) -> str:
    return line if len(line) <= MAX_LINE else line[: MAX_LINE - 1] + "…"
