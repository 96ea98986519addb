"""The lines of an output that report errors, alike ones together. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from runtime.model.evidence import ranked_lines, shortened

MOST_GROUPS = 200
_ERROR = re.compile(
    r"(?i)\b(\w*error|\w*exception|fatal|failed|failure|critical|aborted|killed|segmentation fault|core dumped"
    r"|out of memory|watchdog|nan loss|oom)\b"
)
_HARMLESS = re.compile(
    r"(?i)\b(no|0|zero|without) (\w+ )?(errors?|failures?|exceptions?)\b"
    r"|(?-i:\b[a-z_]*errors?)\s*[=:]\s*[-+\d.]|^\s*File \""
)
_VARIES = re.compile(r"0x[0-9a-fA-F]+|\d+")


@dataclass(slots=True, kw_only=True)
class ErrorGroup:
    text: str
    """The first of them."""
    count: int = 0
    ranks: set[int] = field(default_factory=set)


def group_errors(streams: Iterable[tuple[int | None, str]]) -> list[ErrorGroup]:
    """Error lines, in the order in which they first appear; those that differ in numbers only are one.

    Args:
        streams: (rank, text); rank None: the common output, whose lines may name a rank. A rank with an output of its
            own is not read a second time there.
    """
    found: dict[str, ErrorGroup] = {}
    texts = list(streams)
    own = {rank for rank, _ in texts if rank is not None}
    for stream_rank, text in texts:
        for line_rank, line in ranked_lines(text):
            rank = line_rank if stream_rank is None else stream_rank
            is_copy = stream_rank is None and rank in own
            if not is_copy and is_error(line):
                _add(found, rank, line)
    return list(found.values())[:MOST_GROUPS]


def is_error(line: str) -> bool:
    """Whether a line reports an error, as far as one can tell."""
    return bool(_ERROR.search(line)) and not _HARMLESS.search(line)


def _add(found: dict[str, ErrorGroup], rank: int | None, line: str) -> None:
    group = found.setdefault(_VARIES.sub("#", line), ErrorGroup(text=shortened(line)))
    group.count += 1
    if rank is not None:
        group.ranks.add(rank)
