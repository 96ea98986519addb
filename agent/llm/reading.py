"""JSON as models write it: among prose, in fences, with loose ends, cut off. Pure; decides nothing about its meaning.

What can be understood in one way only is understood; NaN, infinities and keys given twice are refused in words.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

MAX_CHARACTERS = 200_000
"""Of an answer that is looked at."""
MAX_DEPTH = 40
MAX_CANDIDATES = 20

_THOUGHTS = re.compile(r"<(think|thinking|reasoning)>.*?(</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_BLOCK = re.compile(r"```[ \t]*[A-Za-z0-9_+-]*[ \t]*\n?(.*?)(?:```|\Z)", re.DOTALL)
_BRACE = re.compile(r"[{\[]")
_LINE_OF_BRACE = re.compile(r"^[{\[]", re.MULTILINE)
_LOW_HALF = re.compile(r"\\u(d[c-f][0-9a-f]{2})", re.IGNORECASE)
_SPACE = re.compile(r"(?:\s+|//[^\n]*|#[^\n]*|/\*.*?(?:\*/|\Z))+", re.DOTALL)
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_WORD = re.compile(r"[A-Za-z_$][\w$.-]*")
_WORDS: dict[str, object] = {"true": True, "false": False, "null": None, "none": None, "undefined": None}
_NO_NUMBER = re.compile(r"[-+]?(?:nan|inf|infinity)\b", re.IGNORECASE)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_MAX_DIGITS = 400


class Unreadable(Exception):
    """There is no JSON in it, or none that is clear; `str()` is a sentence for the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    value: object
    was_cut: bool
    """It did not end: what was complete is in it."""


class _Cut(Exception):
    """The text ends inside of a value that is worth nothing in part."""


def candidates(text: str) -> list[Found]:
    """Everything in the text that reads as a JSON object or list, the likeliest first.

    Raises:
        Unreadable: nothing does.
    """
    if len(text) > MAX_CHARACTERS:
        raise Unreadable(f"the answer has {len(text):,} characters, and {MAX_CHARACTERS:,} are the most that is read")
    found: list[Found] = []
    trouble: Unreadable | None = None
    for piece in _pieces(without_thoughts(text)):
        try:
            found.append(read(piece))
        except Unreadable as error:
            trouble = trouble or error
    if not found:
        raise trouble or Unreadable("there is no JSON object in the answer")
    return sorted(found, key=lambda one: one.was_cut)


def without_thoughts(text: str) -> str:
    """What a reasoning model wrote before its answer is left out, where its server did not do so."""
    return _THOUGHTS.sub("", text).strip()


def read(text: str) -> Found:
    """The JSON value that the text begins with; what follows it is left alone.

    Raises:
        Unreadable: it begins with none, or with one that is not clear.
    """
    reader = _Reader(text)
    try:
        value = reader.value(0)
    except _Cut as error:
        raise Unreadable("the answer ends before its first value does") from error
    return Found(value=value, was_cut=reader.was_cut)


def _pieces(text: str) -> Iterator[str]:
    """Where JSON may begin: in blocks, then at each brace outside of what was read already."""
    blocks = [block for block in _BLOCK.findall(text) if block.lstrip()[:1] in ("{", "[")]
    yield from blocks[:MAX_CANDIDATES]
    at = 0
    for _ in range(MAX_CANDIDATES):
        begin = _BRACE.search(text, at)
        if begin is None:
            return
        yield text[begin.start() :]
        at = _end_of(text, begin.start())


def _end_of(text: str, begin: int) -> int:
    """Behind the value that begins there; what can not be read is left whole, since a part would be another answer."""
    reader = _Reader(text[begin:])
    try:
        reader.value(0)
    except Unreadable:
        outside = _LINE_OF_BRACE.search(text, begin + 1)
        if reader.n_keys == 0:
            return begin + 1
        return len(text) if outside is None else outside.start()
    except _Cut:
        return begin + 1
    return begin + reader.at


class _Reader:
    """Reads one value, with forbearance; `at` is where it stands."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.at = 0
        self.was_cut = False
        self.n_keys = 0

    def value(self, depth: int) -> object:
        if depth > MAX_DEPTH:
            raise Unreadable(f"it is nested more than {MAX_DEPTH} deep")
        match self._peek():
            case "{":
                return self._object(depth)
            case "[":
                return self._list(depth)
            case '"' | "'":
                return self._string()
            case _:
                return self._plain()

    def _peek(self) -> str:
        """The next character that counts.

        Raises:
            _Cut: there is none.
        """
        space = _SPACE.match(self._text, self.at)
        if space is not None:
            self.at = space.end()
        if self.at >= len(self._text):
            raise _Cut
        return self._text[self.at]

    def _object(self, depth: int) -> dict[str, object]:
        found: dict[str, object] = {}
        self.at += 1
        try:
            while self._peek() != "}":
                if self._peek() == ",":
                    self.at += 1
                    continue
                key = self._key()
                value = self.value(depth + 1)
                if key in found:
                    raise Unreadable(f"the key {key!r} is given twice")
                found[key] = value
                if self.was_cut:
                    return found
            self.at += 1
        except _Cut:
            self.was_cut = True
        return found

    def _list(self, depth: int) -> list[object]:
        found: list[object] = []
        self.at += 1
        try:
            while self._peek() != "]":
                if self._peek() == ",":
                    self.at += 1
                    continue
                value = self.value(depth + 1)
                if self.was_cut:
                    return found  # An item that is not whole would be another item.
                found.append(value)
            self.at += 1
        except _Cut:
            self.was_cut = True
        return found

    def _key(self) -> str:
        if self._peek() in "\"'":
            key = self._string()
        else:
            word = _WORD.match(self._text, self.at)
            if word is None:
                raise Unreadable(f"a key was expected at {self._near()}")
            key, self.at = word.group(), word.end()
        if self._peek() != ":":
            raise Unreadable(f"a colon was expected after the key {key!r}")
        self.at += 1
        self.n_keys += 1
        return key

    def _string(self) -> str:
        quote = self._text[self.at]
        parts: list[str] = []
        self.at += 1
        while self.at < len(self._text):
            character = self._text[self.at]
            self.at += 1
            if character == quote:
                return "".join(parts)
            parts.append(self._escaped() if character == "\\" else character)
        raise _Cut

    def _escaped(self) -> str:
        if self.at >= len(self._text):
            raise _Cut
        character = self._text[self.at]
        self.at += 1
        if character != "u":
            return _ESCAPED.get(character, character)
        digits = self._text[self.at : self.at + 4]
        if not re.fullmatch(r"[0-9a-fA-F]{4}", digits):
            return "u"
        self.at += 4
        return self._joined(int(digits, 16))

    def _joined(self, code: int) -> str:
        """Two halves of a character are one; a half alone is the sign for what can not be shown."""
        low = _LOW_HALF.match(self._text, self.at)
        if 0xD800 <= code < 0xDC00 and low is not None:
            self.at = low.end()
            return chr(0x10000 + ((code - 0xD800) << 10) + int(low[1], 16) - 0xDC00)
        return "\ufffd" if 0xD800 <= code < 0xE000 else chr(code)

    def _plain(self) -> object:
        """A number, or a word that has a meaning."""
        if _NO_NUMBER.match(self._text, self.at):
            raise Unreadable("NaN and infinities are no values; give a number, or leave it out")
        number = _NUMBER.match(self._text, self.at)
        match = number or _WORD.match(self._text, self.at)
        if match is None:
            raise Unreadable(f"a value was expected at {self._near()}")
        self.at = match.end()
        if self.at >= len(self._text):
            raise _Cut
        if number is not None:
            return self._number(number.group())
        if match.group().lower() not in _WORDS:
            raise Unreadable(f"{match.group()[:40]!r} is no value of JSON; texts stand in double quotes")
        return _WORDS[match.group().lower()]

    def _number(self, text: str) -> int | float:
        if _WORD.match(self._text, self.at):
            raise Unreadable(f"a number was expected at {text[:20] + self._text[self.at : self.at + 10]!r}")
        if len(text) > _MAX_DIGITS:
            raise Unreadable(f"a number of {len(text)} digits is not read")
        value = int(text) if re.fullmatch(r"[-+]?\d+", text) else float(text)
        if isinstance(value, float) and not math.isfinite(value):
            raise Unreadable(f"{text} is too large a number")
        return value

    def _near(self) -> str:
        return json.dumps(self._text[self.at : self.at + 20], ensure_ascii=False)
