"""The signs by which a failure is known in what a job printed: `signs.toml`, read once and checked."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files

from agent.doctor.diagnosis import FailureClass


class Where(StrEnum):
    EXCEPTION = "exception"
    """In the exception that ended the program, or in what it was raised for."""
    LINE = "line"
    """In any of the last lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    cause: str
    suggestion: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    failure: FailureClass
    where: Where
    regex: re.Pattern[str]
    words: Words
    """Named groups of the regular expression may stand in them."""
    is_sure: bool
    source: str
    examples: tuple[str, ...]
    counterexamples: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    in_order: tuple[Sign, ...]
    words: dict[FailureClass, Words]
    """What is said of a class where no sign says it better."""


@cache
def signs() -> Signs:
    """What ships with the program."""
    return parse_signs(files("agent.doctor").joinpath("signs.toml").read_text(encoding="utf-8"))


def parse_signs(text: str) -> Signs:
    """
    Raises:
        ValueError: not TOML, a class without words, an unknown key, or a regular expression that can not be compiled.
    """
    read = tomllib.loads(text)
    words = {FailureClass(name): Words(**entry) for name, entry in read["class"].items()}
    without = [each.value for each in FailureClass if each not in words]
    if without:
        raise ValueError(f"signs.toml says nothing of: {', '.join(without)}")
    return Signs(in_order=tuple(_sign(entry, words) for entry in read["sign"]), words=words)


def _sign(entry: dict[str, object], words: dict[FailureClass, Words]) -> Sign:
    known = {"failure", "where", "regex", "cause", "suggestion", "sure", "source", "examples", "counterexamples"}
    if set(entry) - known:
        raise ValueError(f"signs.toml: unknown {', '.join(sorted(set(entry) - known))}")
    failure = FailureClass(str(entry["failure"]))
    of_class = words[failure]
    try:
        regex = re.compile(str(entry["regex"]))
    except re.error as error:
        raise ValueError(f"signs.toml: {entry['regex']}: {error}") from error
    return Sign(
        failure=failure,
        where=Where(str(entry.get("where", Where.EXCEPTION))),
        regex=regex,
        words=Words(
            cause=str(entry.get("cause", of_class.cause)),
            suggestion=str(entry.get("suggestion", of_class.suggestion)),
        ),
        is_sure=entry.get("sure", True) is True,
        source=str(entry["source"]),
        examples=_lines(entry.get("examples")),
        counterexamples=_lines(entry.get("counterexamples")),
    )


def _lines(value: object) -> tuple[str, ...]:
    return tuple(str(line) for line in value) if isinstance(value, list) else ()
