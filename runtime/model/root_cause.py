"""What ended a job of several ranks: the rank that failed first, not the ones that noticed. Pure.

When one rank of a gang dies, the others report a lost connection or a timeout, often long before anybody reads the
one line that matters. Patterns of such reports are marked as cascades (`exit_patterns.toml`); a cascade is the cause
only where nothing else is found.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .evidence import (
    NOTHING,
    Cleaned,
    ExitPattern,
    Found,
    cleaned,
    find_in,
    is_cascade,
    ranked_lines,
    shortened,
    thrown,
)
from .states import ExitReason

_FIRST_FAILURE = re.compile(r"Root Cause \(first observed failure\)")
_RANK = re.compile(r"^\s*rank\s*:\s*(\d+)\b")
_EXIT_CODE = re.compile(r"^\s*exitcode\s*:\s*(-?\d+)\b")
_SUMMARY_LINES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class RankTail:
    """The end of the output of one rank that has a file of its own."""

    rank: int
    text: str


class Cause(NamedTuple):
    """What ended the job, as its output tells."""

    reason: ExitReason | None
    """None: an error without a pattern."""
    line: str
    rank: int | None
    """None: there is one rank, or it can not be told."""
    place: str | None
    """`train.py:33`; None: the line came without a traceback."""
    signal_number: int | None = None
    """The signal that killed that rank, as its launcher reports."""

    @property
    def evidence(self) -> str:
        """`rank 3: ValueError: bad (train.py:33)`."""
        rank = "" if self.rank is None else f"rank {self.rank}: "
        place = "" if self.place is None else f" ({self.place})"
        return shortened(f"{rank}{self.line}{place}")


def find_cause(
    log: str, ranks: Sequence[RankTail], patterns: tuple[ExitPattern, ...], *, n_ranks: int = 1
) -> Cause | None:
    """The cause, from the common output and from the files of the ranks; None: the output names none."""
    by_rank = lines_by_rank(log, ranks)
    leader = by_rank.pop(None, NOTHING)
    reported = _first_failure(leader.lines)
    if reported is not None:
        cause = _of_reported(reported, by_rank, patterns)
        if cause is not None:
            return cause
    everybody: dict[int | None, Cleaned] = {**by_rank, None: leader}
    return (
        _by_own_pattern(everybody, patterns)
        or _by_own_exception(everybody, patterns)
        or _by_absence(by_rank, patterns, n_ranks)
        or _by_cascade(everybody, patterns)
    )


class _Reported(NamedTuple):
    rank: int
    exit_code: int | None


def lines_by_rank(log: str, ranks: Sequence[RankTail]) -> dict[int | None, Cleaned]:
    """Lines by rank; those that name none are the leader's. A rank's own file counts, not its copy in the log."""
    found: dict[int | None, Cleaned] = {tail.rank: cleaned(tail.text) for tail in ranks}
    lines: dict[int | None, list[str]] = {None: []}
    for rank, line in ranked_lines(log):
        if rank not in found:
            lines.setdefault(rank, []).append(line)
    return found | {rank: Cleaned.of(of_rank) for rank, of_rank in lines.items()}


def _first_failure(lines: Sequence[str]) -> _Reported | None:
    """Which rank a launcher saw fail first (the summary that torchrun prints)."""
    for start in range(len(lines) - 1, -1, -1):
        if _FIRST_FAILURE.search(lines[start]):
            summary = lines[start + 1 : start + 1 + _SUMMARY_LINES]
            rank = next((int(m[1]) for line in summary if (m := _RANK.match(line))), None)
            code = next((int(m[1]) for line in summary if (m := _EXIT_CODE.match(line))), None)
            return None if rank is None else _Reported(rank, code)
    return None


def _of_reported(
    reported: _Reported, by_rank: dict[int | None, Cleaned], patterns: tuple[ExitPattern, ...]
) -> Cause | None:
    only: dict[int | None, Cleaned] = {reported.rank: by_rank.get(reported.rank, NOTHING)}
    cause = _by_own_pattern(only, patterns) or _by_own_exception(only, patterns)
    if cause is not None or reported.exit_code is None or reported.exit_code >= 0:
        return cause
    line = f"killed by signal {-reported.exit_code}, the first to go"
    return Cause(ExitReason.KILLED_BY_SIGNAL, line, reported.rank, None, -reported.exit_code)


def _by_own_pattern(everybody: dict[int | None, Cleaned], patterns: tuple[ExitPattern, ...]) -> Cause | None:
    for pattern in patterns:
        if pattern.is_cascade:
            continue
        for rank, of in sorted(everybody.items(), key=_by_number):
            found = find_in(of, (pattern,), patterns)
            if found is not None:
                return _cause(found, rank)
    return None


def _by_own_exception(everybody: dict[int | None, Cleaned], patterns: tuple[ExitPattern, ...]) -> Cause | None:
    """An exception that is no cascade, on any rank."""
    for rank, of in sorted(everybody.items(), key=_by_number):
        exception = thrown(of, patterns)
        if exception is not None and not is_cascade(exception.line, patterns):
            return Cause(None, exception.line, rank, exception.place)
    return None


def _by_absence(by_rank: dict[int | None, Cleaned], patterns: tuple[ExitPattern, ...], n_ranks: int) -> Cause | None:
    """The ranks that said nothing of the kind, while the others report that they lost somebody."""
    told = {rank for rank, of in by_rank.items() if find_in(of, _cascades(patterns), patterns) is not None}
    silent = sorted({*range(n_ranks), *(rank for rank in by_rank if rank is not None)} - told)
    if not told or not silent:
        return None
    last = by_rank.get(silent[0], NOTHING).lines[-1:]
    others = f" (so did {', '.join(str(rank) for rank in silent[1:])})" if len(silent) > 1 else ""
    line = f"it went without a word{others}, and the others lost their connection to it"
    return Cause(ExitReason.COLLECTIVE_FAILURE, f"{line}; its last line: {last[0]}" if last else line, silent[0], None)


def _by_cascade(everybody: dict[int | None, Cleaned], patterns: tuple[ExitPattern, ...]) -> Cause | None:
    for rank, of in sorted(everybody.items(), key=_by_number):
        found = find_in(of, _cascades(patterns), patterns)
        if found is not None:
            return _cause(found, rank)
    return None


def _cascades(patterns: tuple[ExitPattern, ...]) -> tuple[ExitPattern, ...]:
    return tuple(pattern for pattern in patterns if pattern.is_cascade)


def _cause(found: Found, rank: int | None) -> Cause:
    return Cause(found.reason, found.line, rank, found.place)


def _by_number(entry: tuple[int | None, Cleaned]) -> tuple[bool, int]:
    """Ranks first, in order; then what belongs to no rank."""
    rank = entry[0]
    return rank is None, rank or 0
