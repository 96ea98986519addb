"""The end of what a job printed, as far as it tells of its failure: whose, which exception, which lines. Pure."""

from __future__ import annotations

import re

from agent.doctor.evidence import Evidence
from agent.doctor.signs import Sign, Where
from runtime_client.models import LogEnd, LogException, LogTraceback

NEAR = 40
"""What was printed so many lines before the end, or earlier, did not end the program."""
MOST_SHOWN = 5
_LAST_WORDS = 3
_MOST_CHARACTERS = 300
_RANK = re.compile(r"^rank (\d+): ")
_PLACE = re.compile(r" \([^()]{1,80}:\d+\)$")
_EXCEPTION = re.compile(r"^[A-Za-z_][\w.]*(Error|Exception|Interrupt|Warning)\b")
_LAUNCHERS = ("torch.distributed.elastic.multiprocessing.errors.ChildFailedError", "subprocess.CalledProcessError")
"""What a launcher raises because what it launched has failed."""


class Output:
    """Chosen once: the rank that failed, and the exception that ended it, the root first."""

    def __init__(self, evidence: Evidence) -> None:
        self._line = evidence.line
        self._ends = () if evidence.output is None else evidence.output.ends
        self._reports = () if evidence.output is None else evidence.output.lines
        self._end = self._failed_end()
        self.raised: tuple[LogException, ...] = () if self._end is None else self._ended_by(self._end)

    @property
    def shown(self) -> tuple[str, ...]:
        """What says why, the root first: exceptions with their places, the runtime's line, lines that report errors."""
        raised = [_with_place(each) for each in self.raised]
        if raised and self._end is not None and self._end.rank is not None:
            raised = [f"rank {self._end.rank}: {line}" for line in raised]
        kept = [self._line] if self._line and self.is_at_end(self._line) else []
        reports = [] if raised or kept else [report.text for report in self._reports[-2:] if self._is_last(report.text)]
        return _shown([*raised, *kept, *reports])

    @property
    def last_words(self) -> tuple[str, ...]:
        end = next(iter(self._ends), None)
        return () if end is None else _shown(list(end.lines[-_LAST_WORDS:]))

    def with_line(self, line: str) -> tuple[str, ...]:
        """What is shown, with a line of the output that tells more, unless it is there already."""
        told = self.shown
        return told if any(line in each or each in line for each in told) else _shown([*told[:1], line, *told[1:]])

    def is_at_end(self, line: str | None) -> bool:
        """Whether the runtime's line stands near the end of the output; where that is not known, it does."""
        if line is None:
            return False
        if not self._ends:
            return True
        text = _bare(line)
        if any(text in _without_place(each.text) or each.text in text for each in self.raised):
            return True
        is_quoted = "its last line: " in text or not text
        return is_quoted or self._is_last(text) or not self._is_printed(text)

    def find(self, sign: Sign) -> str | None:
        """The line in which a sign is found; None: it is not."""
        if sign.where is Where.EXCEPTION:
            for each in reversed(self.raised):
                text = "\n".join((each.text, *each.more))
                if sign.regex.search(each.text) or (each.more and sign.regex.search(text)):
                    return text
            return self._told_exception(sign)
        lines = [line for end in self._ends for line in end.lines] or ([_bare(self._line)] if self._line else [])
        return next((line for line in reversed(lines) if sign.regex.search(line)), None)

    def _told_exception(self, sign: Sign) -> str | None:
        """The runtime's line, where it is an exception that came without a traceback, or no output is left."""
        line = _bare(self._line or "")
        is_one = not self.raised and _EXCEPTION.match(line) is not None and self.is_at_end(self._line)
        return line if is_one and sign.regex.search(line) else None

    def _failed_end(self) -> LogEnd | None:
        """The end of the rank that the runtime names, else of one with an exception, those without a rank first."""
        named = _RANK.match(self._line or "")
        if named is not None:
            return next((end for end in self._ends if end.rank == int(named[1])), None)
        return next((end for end in self._ends if self._ended_by(end)), None)

    def _ended_by(self, end: LogEnd) -> tuple[LogException, ...]:
        """The chain of the last exception that ended it; of several, the one that the runtime names."""
        near = [each for each in end.tracebacks if each.n_lines_after <= NEAR and not _is_launcher(each)]
        line = _bare(self._line or "")
        named = [each for each in near if line and any(_bare(line) in one.text for one in each.exceptions)]
        chosen = (named or near)[-1:]
        return chosen[0].exceptions if chosen else ()

    def _is_last(self, text: str) -> bool:
        return any(text in line or (line in text and len(line) > 20) for end in self._ends for line in end.lines)

    def _is_printed(self, text: str) -> bool:
        """Whether it is a line of the output at all: a sentence of the runtime is not."""
        return any(text in each.text or each.text in text for each in self._reports) or any(
            text in one.text for end in self._ends for each in end.tracebacks for one in each.exceptions
        )


def _is_launcher(traceback: LogTraceback) -> bool:
    return traceback.exceptions[-1].text.startswith(_LAUNCHERS)


def _bare(line: str) -> str:
    """The runtime's line without the rank and the place that it has added."""
    return _without_place(_RANK.sub("", line)).rstrip("…")


def _without_place(line: str) -> str:
    return _PLACE.sub("", line)


def _with_place(each: LogException) -> str:
    return each.text if each.place is None else f"{each.text} ({each.place})"


def _shown(lines: list[str]) -> tuple[str, ...]:
    found: list[str] = []
    for line in lines:
        short = line if len(line) <= _MOST_CHARACTERS else line[: _MOST_CHARACTERS - 1] + "…"
        if short and not any(_bare(short) in known for known in found):
            found.append(short)
    return tuple(found[:MOST_SHOWN])
