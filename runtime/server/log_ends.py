"""How the output of each rank ends: its last lines, and the last exceptions with what they came from. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from runtime.model.evidence import Cleaned, Thrown, shortened
from runtime.model.root_cause import RankTail, lines_by_rank
from runtime_client.models import LogEnd, LogException, LogTraceback

MOST_LINES = 40
MOST_TRACEBACKS = 3
_MOST_MORE = 4


def log_ends(streams: Iterable[tuple[int | None, str]]) -> tuple[LogEnd, ...]:
    """The ends of the common output (rank None, first) and of each rank, in their order.

    Args:
        streams: (rank, text); rank None: the common output, whose lines may name a rank. A rank with an output of its
            own is not read a second time there.
    """
    common, own = "", dict[int, str]()
    for rank, text in streams:
        if rank is None:
            common += text
        else:
            own[rank] = f"{own[rank]}\n{text}" if rank in own else text
    found = lines_by_rank(common, [RankTail(rank=rank, text=text) for rank, text in own.items()])
    ordered = sorted(found.items(), key=lambda entry: -1 if entry[0] is None else entry[0])
    return tuple(_end(rank, of) for rank, of in ordered)


def _end(rank: int | None, of: Cleaned) -> LogEnd:
    last = _not_passed_on(of.exceptions)[-MOST_TRACEBACKS:]
    return LogEnd(
        rank=rank,
        tracebacks=tuple(_traceback(each, of.lines) for each in last),
        lines=tuple(shortened(line) for line in of.lines[-MOST_LINES:]),
    )


def _not_passed_on(exceptions: tuple[Thrown, ...]) -> list[Thrown]:
    """Without those that a later one only passes on: they are in its chain."""
    passed_on = {id(each.came_from) for each in exceptions if each.came_from is not None}
    return [each for each in exceptions if id(each) not in passed_on]


def _traceback(last: Thrown, lines: tuple[str, ...]) -> LogTraceback:
    return LogTraceback(
        exceptions=tuple(_exception(each, lines) for each in reversed(last.chain)),
        n_lines_after=len(lines) - 1 - last.at,
    )


def _exception(each: Thrown, lines: tuple[str, ...]) -> LogException:
    more = lines[each.at + 1 : each.at + 1 + _MOST_MORE]
    return LogException(text=shortened(each.line), place=each.place, more=tuple(shortened(line) for line in more))
