"""The one way by which text of jobs, files and people gets into a prompt: fenced, cleaned, cut. Pure."""

from __future__ import annotations

import hashlib
import re
import unicodedata

from prompts import Fenced

_ESCAPES = re.compile(
    r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # titles, links
    r"|\x1b[PX^_][^\x1b]*(?:\x1b\\)?"  # device strings
    r"|[\x1b]\[[0-?]*[ -/]*[@-~]?|\x9b[0-?]*[ -/]*[@-~]?"  # colors, cursor
    r"|\x1b[ -/]*[0-~]?"
)
"""Control sequences of terminals. Source: ECMA-48, 5th edition, section 5.4 and 8.3."""
_LINE_ENDS = re.compile(r"\r\n|[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_ROLES = re.compile(
    r"<(?=[|\uff5c])|(?<=[|\uff5c])>"  # <|im_start|>, <|eot_id|>
    r"|<(?=/?(?:s|bos|eos|start_of_turn|end_of_turn|tool_call|tool_response|untrusted)\b)"
    r"|\[(?=/?(?:INST|TOOL_CALLS|AVAILABLE_TOOLS|TOOL_RESULTS|SYSTEM_PROMPT)\])"
    r"|<(?=<?/?SYS>>)",
    re.IGNORECASE,
)
"""Beginnings and ends of what the chat templates of open models take for a change of speaker; some servers read them in
any text. A space is put in."""
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
"""Categories of Unicode that nobody sees, or that turn the direction of reading: a way to hide instructions."""
_LABEL_CHARACTERS = 60
_LOOK_AT = 8
"""So many times the limit at either end may be what is not seen, such as colors."""
_MARKER_DIGITS = 8


def fenced(text: str, *, label: str, limit: int) -> Fenced:
    """The text as data between two lines that it can not forge, at most `limit` characters of it.

    The id in both lines is a hash of the text, drawn again until the text does not hold it.

    Args:
        label: What it is, for the model: `last lines of job j3`.
        limit: In characters, at least 1; what is more is cut out of the middle, and the place says how much it was.
    """
    inside = _cut(text, max(limit, 1))
    what = clean(label).replace("\n", " ").replace('"', "'")[:_LABEL_CHARACTERS]
    marker = _marker(inside + what)
    return Fenced(f'<untrusted id={marker} what="{what}">\n{inside}\n</untrusted id={marker}>')


def clean(text: str) -> str:
    """Without what a reader would not see: control sequences, control and invisible characters, marks of speakers."""
    text = _LINE_ENDS.sub("\n", _ESCAPES.sub("", text))
    seen = "".join(c for c in text if c in "\n\t" or unicodedata.category(c) not in _INVISIBLE)
    return _ROLES.sub(lambda found: " >" if found.group() == ">" else f"{found.group()} ", seen)


def _cut(text: str, limit: int) -> str:
    """Cleaned, the middle taken out. Of a giant text only both ends are looked at."""
    n_head, n_looked = limit // 3, limit * _LOOK_AT
    if len(text) <= 2 * n_looked:
        text = clean(text)
        if len(text) <= limit:
            return text
        head, tail, n = text, text, len(text) - limit
    else:
        head, tail = clean(text[:n_looked]), clean(text[-n_looked:])
        n = len(text) - min(n_head, len(head)) - min(limit - n_head, len(tail))
    return f"{head[:n_head]}\n[... {n:,} characters cut here ...]\n{tail[n_head - limit :]}"


def _marker(text: str) -> str:
    """Fewer characters than a hash has, so that it is drawn until the text does not hold it."""
    marker = hashlib.sha256(text.encode()).hexdigest()
    while marker[:_MARKER_DIGITS] in text:
        marker = hashlib.sha256(marker.encode()).hexdigest()
    return marker[:_MARKER_DIGITS]
