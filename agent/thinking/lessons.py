"""Lessons: what a model has learned, a sentence each with the trials that show it. Pure.

They stand for the trials that a prompt has no room for. Few are kept: what the least evidence supports goes first, of
equals the oldest. A sentence that is there already takes the new evidence on.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

MOST = 12
"""Lessons that a session keeps at once."""
MOST_CHARACTERS = 160
MOST_EVIDENCE = 8
"""Trials of one lesson; of more the newest are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    number: int
    """1, 2, ... within the session; never used again."""
    text: str
    evidence: tuple[str, ...]
    """Ids of trials, at least one."""
    written_by: str
    """Model, or `doctor`."""
    at: float = 0.0
    """Seconds since the epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """A lesson as it is offered; nothing of it is checked."""

    text: str
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What becomes of lessons when some are offered."""

    lessons: tuple[Lesson, ...]
    """All that are kept, by number."""
    dropped: tuple[Lesson, ...]
    refusals: tuple[str, ...]
    """Why one was not taken, a sentence each."""


def keep(
    known: Sequence[Lesson],
    offered: Sequence[Learned],
    trial_ids: Collection[str],
    *,
    next_number: int,
    by: str,
    at: float,
) -> Kept:
    """The lessons after those that are offered.

    Args:
        trial_ids: trials that exist; evidence that names none of them is no evidence.
        next_number: for the first new one; every number is used once.
    """
    lessons = list(known)
    refused: list[str] = []
    for one in offered:
        text = " ".join(one.text.split())[:MOST_CHARACTERS]
        unknown = [trial_id for trial_id in one.evidence if trial_id not in trial_ids]
        if not text:
            refused.append("a lesson without any text")
        elif unknown or not one.evidence:
            what = f"there is no trial {unknown[0][:40]!r}" if unknown else "it names no trial that shows it"
            refused.append(f"the lesson {text[:60]!r} is not kept: {what}")
        else:
            _take(lessons, text, one.evidence, next_number, by, at)
            next_number = max(next_number, max(lesson.number for lesson in lessons) + 1)
    dropped: list[Lesson] = []
    while len(lessons) > MOST:
        weakest = min(lessons, key=lambda lesson: (len(lesson.evidence), lesson.number))
        lessons.remove(weakest)
        dropped.append(weakest)
    return Kept(lessons=tuple(lessons), dropped=tuple(dropped), refusals=tuple(refused))


def _take(lessons: list[Lesson], text: str, evidence: Sequence[str], number: int, by: str, at: float) -> None:
    for place, lesson in enumerate(lessons):
        if lesson.text.casefold() == text.casefold():
            both = tuple(dict.fromkeys((*lesson.evidence, *evidence)))[-MOST_EVIDENCE:]
            lessons[place] = replace(lesson, evidence=both)
            return
    unique = tuple(dict.fromkeys(evidence))[-MOST_EVIDENCE:]
    lessons.append(Lesson(number=number, text=text, evidence=unique, written_by=by, at=at))
