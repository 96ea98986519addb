"""The line of a log that tells why a command ended. Pure: the text and the patterns are passed in.

A pattern either looks at every line, or at the exception that ended the program alone: a library that prints
"No module named 'apex'" and goes on has not failed for it.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from .errors import BadPayload
from .states import ExitReason

MAX_LINE = 500
"""Characters kept of a line of evidence."""

_RANK_PREFIX = re.compile(r"^\[(?:rank|default)?\d+\]:\s?")
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")
_TRACEBACK = "Traceback (most recent call last):"
_EXCEPTION = re.compile(r"^[A-Za-z_][\w.]*(?::|$)")


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
    examples: tuple[str, ...]
    """Lines it must match; tested."""
    counterexamples: tuple[str, ...] = ()
    """Lines it must not match; tested."""


class Found(NamedTuple):
    reason: ExitReason
    line: str


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
    unknown = set(entry) - {"reason", "where", "regex", "examples", "counterexamples"}
    if unknown:
        raise BadPayload(path=path, why=f"unknown {', '.join(sorted(unknown))}")
    try:
        return ExitPattern(
            reason=ExitReason(str(entry["reason"])),
            where=Where(str(entry.get("where", Where.ANYWHERE))),
            regex=re.compile(str(entry["regex"])),
            examples=_lines(entry.get("examples")),
            counterexamples=_lines(entry.get("counterexamples")),
        )
    except (KeyError, ValueError, re.error) as error:
        raise BadPayload(path=path, why=str(error)) from error


def _lines(value: object) -> tuple[str, ...]:
    return tuple(str(line) for line in value) if isinstance(value, list) else ()


def find_pattern(log: str, patterns: tuple[ExitPattern, ...]) -> Found | None:
    """The first pattern that the log matches, with the line; None: none does."""
    lines = _clean_lines(log)
    exception = _last_exception(lines)
    for pattern in patterns:
        candidates = reversed(lines) if pattern.where is Where.ANYWHERE else (exception or "",)
        for line in candidates:
            if pattern.regex.search(line):
                return Found(pattern.reason, _short(line))
    return None


def last_line(log: str) -> str | None:
    """The exception that ended the program, else the last line that says something; None: it said nothing."""
    lines = _clean_lines(log)
    line = _last_exception(lines) or (lines[-1] if lines else None)
    return _short(line) if line else None


def _clean_lines(log: str) -> list[str]:
    """Lines without colors, control characters, rank prefixes; of a progress bar, the last state."""
    lines = []
    for raw in log.split("\n"):
        line = _CONTROL.sub("", raw.rstrip("\r").rsplit("\r", 1)[-1])
        line = _RANK_PREFIX.sub("", line).rstrip()
        if line:
            lines.append(line)
    return lines


def _last_exception(lines: list[str]) -> str | None:
    """The exception line under the last Python traceback."""
    for start in range(len(lines) - 1, -1, -1):
        if lines[start].endswith(_TRACEBACK):
            return next((line for line in lines[start + 1 :] if _EXCEPTION.match(line)), None)
    return None


def _short(line: str) -> str:
    return line if len(line) <= MAX_LINE else line[: MAX_LINE - 1] + "…"
