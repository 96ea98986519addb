"""`LessonBook`: what a session has learned, as rows. A lesson that is dropped keeps its row, with the time of it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import sqlalchemy as sa

from agent.store.fenced import FencedWriter, Line
from agent.store.store import AgentStore
from agent.store.tables import lessons
from agent.thinking.lessons import Kept, Learned, Lesson, keep

_STEP = "lessons"


def read_lessons(store: AgentStore, session_id: str) -> list[Lesson]:
    """Those that are kept, by number."""
    query = (
        sa.select(lessons)
        .where(lessons.c.session_id == session_id, lessons.c.dropped_at.is_(None))
        .order_by(lessons.c.lesson)
    )
    with store.engine.connect() as connection:
        return [_lesson(row) for row in connection.execute(query).mappings()]


class LessonBook:
    """Kept in memory as well: the holder of the newest fence is the only writer, so the copy is exact."""

    def __init__(self, writer: FencedWriter) -> None:
        self._writer = writer
        self._lessons = read_lessons(writer.store, writer.session_id)
        last = sa.select(sa.func.max(lessons.c.lesson)).where(lessons.c.session_id == writer.session_id)
        with writer.store.engine.connect() as connection:
            self._next = 1 + (connection.execute(last).scalar() or 0)

    def lessons(self) -> list[Lesson]:
        return list(self._lessons)

    def offer(self, offered: Sequence[Learned], trial_ids: Collection[str], *, by: str) -> Kept:
        """Keep what is sound of it, drop what it displaces, and say both; what was refused is the caller's to say."""
        now = self._writer.store.clock()
        kept = keep(self._lessons, offered, trial_ids, next_number=self._next, by=by, at=now)
        before = {lesson.number: lesson for lesson in self._lessons}
        gone = {lesson.number for lesson in kept.dropped}
        new = [one for one in (*kept.lessons, *kept.dropped) if one.number not in before]
        changed = [one for one in kept.lessons if one.number in before and one != before[one.number]]
        if not new and not changed and not gone:
            return kept
        lines = [Line(step=_STEP, text=f"lesson {one.number} ({by}): {one.text}") for one in new]
        lines += [Line(step=_STEP, text=f"lesson {number} is dropped for better supported ones") for number in gone]
        with self._writer.writing() as connection:
            if new:
                connection.execute(sa.insert(lessons), [self._row(one) for one in new])
            for one in changed:
                connection.execute(self._update(one.number).values(evidence=list(one.evidence)))
            for number in gone:
                connection.execute(self._update(number).values(dropped_at=now))
            self._writer.say(connection, lines)
        self._lessons = list(kept.lessons)
        self._next = max([self._next - 1, *(one.number for one in new)]) + 1
        return kept

    def _update(self, number: int) -> sa.Update:
        return sa.update(lessons).where(lessons.c.session_id == self._writer.session_id, lessons.c.lesson == number)

    def _row(self, one: Lesson) -> dict[str, object]:
        return {
            "session_id": self._writer.session_id,
            "lesson": one.number,
            "at": one.at,
            "text": one.text,
            "evidence": list(one.evidence),
            "written_by": one.written_by,
            "dropped_at": None,
        }


def _lesson(row: sa.RowMapping) -> Lesson:
    return Lesson(
        number=row["lesson"],
        text=row["text"],
        evidence=tuple(row["evidence"]),
        written_by=row["written_by"],
        at=row["at"],
    )
