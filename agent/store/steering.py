"""What people said to sessions, as rows: `SteeringStore` for everybody who speaks and reads, `SteeringBook` for the
session that goes on by it.

A word changes the task in the transaction in which it is written, so it counts once, whoever is killed, and two people
who speak at once are heard one after the other. The session sees that there is a newer word and goes on by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from agent.planner.plan_text import UnknownPlanVersion, plan_from_json
from agent.steering.word import CanNotSay, Course, Kind, Word, steered, understood
from agent.store import rows
from agent.store.fenced import FencedWriter, Line
from agent.store.record import write_revision
from agent.store.schema import writing
from agent.store.store import AgentStore
from agent.store.tables import activity, plan_revisions, sessions, steerings, suggestions
from agent.store.views import SessionState
from agent.task import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Steering:
    steering_id: int
    session_id: str
    at: float
    """Seconds since the epoch."""
    by: str
    word: Word
    taken_at: float | None
    """When the session went on by it, with a revision of its plan; None: not yet, or it is not running."""

    @property
    def words(self) -> str:
        """`ann forbids lr > 0.1`."""
        return f"{self.by} {self.word.words}"


class SteeringStore:
    def __init__(self, store: AgentStore) -> None:
        self._store = store

    def steerings(self, session_id: str) -> list[Steering]:
        """All that was said to a session, oldest first.

        Raises:
            SessionNotFound: as `AgentStore.session`.
        """
        self._store.session(session_id)
        with self._store.engine.connect() as connection:
            return _read(connection, session_id)

    def course(self, session_id: str) -> Course:
        """The task as it is now, and whether the session is paused or taken over.

        Raises:
            SessionNotFound: as `AgentStore.session`.
        """
        session = self._store.session(session_id)
        return _course(Task.model_validate_json(session.task_json), self.steerings(session_id))

    def say(self, session_id: str, words: Sequence[Word], *, by: str) -> list[Steering]:
        """Say something to a session, all of it or nothing. It goes on by it at once, or when it is resumed.

        Args:
            by: user name of whoever says it.

        Raises:
            SessionNotFound: as `AgentStore.session`.
            CanNotSay: what is wrong, and what would do; nothing was changed.
        """
        self._store.session(session_id)
        with writing(self._store.engine) as connection:
            mine = sessions.c.session_id == session_id
            row = connection.execute(sa.select(sessions).where(mine).with_for_update()).mappings().one()
            if row["state"] == SessionState.FINISHED.value:
                raise CanNotSay(f"{session_id} is finished; start another one with: nightlab research start")
            course = _course(Task.model_validate_json(row["task_json"]), _read(connection, session_id))
            closed = _search_closed(connection, session_id, course.task)
            for word in words:
                course = steered(course, word, by=by, search_closed=closed)
            connection.execute(sa.update(sessions).where(mine).values(task_json=course.task.model_dump_json()))
            return [self._write(connection, session_id, understood(word, course.task), by) for word in words]

    def _write(self, connection: sa.Connection, session_id: str, word: Word, by: str) -> Steering:
        now = self._store.clock()
        content = {"text": word.text, "budget": word.budget, "value": word.value, "params": dict(word.params)}
        values = {"session_id": session_id, "at": now, "said_by": by, "kind": word.kind.value, "content": content}
        made = connection.execute(sa.insert(steerings).values(**values).returning(steerings)).mappings().one()
        found = _steering(made)
        line = {"session_id": session_id, "at": now, "step": "steer", "text": found.words}
        connection.execute(sa.insert(activity).values(**line))
        if word.kind is Kind.HYPOTHESIS and word.params:
            idea = {"params": dict(word.params), "why": word.text, "suggested_by": by[:60]}
            connection.execute(sa.insert(suggestions).values(session_id=session_id, at=now, **idea))
        return found


class SteeringBook:
    """As the process of a session sees it."""

    def __init__(self, writer: FencedWriter) -> None:
        self._writer = writer
        self._seen = 0
        """Number of the newest word that this process goes by."""

    @property
    def has_news(self) -> bool:
        """Somebody has said more than this process goes by."""
        mine = steerings.c.session_id == self._writer.session_id
        with self._writer.store.engine.connect() as connection:
            newest = connection.execute(sa.select(sa.func.max(steerings.c.steering_id)).where(mine)).scalar()
        return (newest or 0) > self._seen

    def course(self) -> Course:
        """What the session goes by from now on."""
        session = self._writer.store.session(self._writer.session_id)
        said = SteeringStore(self._writer.store).steerings(self._writer.session_id)
        self._seen = max((one.steering_id for one in said), default=0)
        return _course(Task.model_validate_json(session.task_json), said)

    def untaken(self) -> list[Steering]:
        """What no revision of the plan tells yet."""
        said = SteeringStore(self._writer.store).steerings(self._writer.session_id)
        return [one for one in said if one.taken_at is None and one.steering_id <= self._seen]

    def take(self, taken: Sequence[Steering], revision: int, phase: str, reason: str, plan_json: str) -> None:
        """Write the revision that tells of them; both or none."""
        numbers = [one.steering_id for one in taken]
        with self._writer.writing() as connection:
            write_revision(self._writer, connection, revision, phase, reason, plan_json)
            connection.execute(
                sa.update(steerings)
                .where(steerings.c.steering_id.in_(numbers))
                .values(taken_at=self._writer.store.clock())
            )
            self._writer.say(connection, [Line(step="revise", text=f"plan revision {revision}: {reason}")])


def _course(task: Task, said: Sequence[Steering]) -> Course:
    kinds = [one.word.kind for one in said]
    return Course(
        task=task,
        is_paused=_last(kinds, Kind.PAUSE, Kind.GO_ON),
        is_taken_over=_last(kinds, Kind.TAKE_OVER, Kind.HAND_BACK),
    )


def _last(kinds: Sequence[Kind], on: Kind, off: Kind) -> bool:
    return next((kind is on for kind in reversed(kinds) if kind in (on, off)), False)


def _search_closed(connection: sa.Connection, session_id: str, task: Task) -> str | None:
    newest = (
        sa.select(plan_revisions.c.plan_json)
        .where(plan_revisions.c.session_id == session_id)
        .order_by(plan_revisions.c.revision.desc())
        .limit(1)
    )
    text = connection.execute(newest).scalar()
    if text is None:
        return None
    try:
        return plan_from_json(text, task).search_closed
    except UnknownPlanVersion:
        return "a newer nightlab works on it"


def _read(connection: sa.Connection, session_id: str) -> list[Steering]:
    query = sa.select(steerings).where(steerings.c.session_id == session_id).order_by(steerings.c.steering_id)
    return [_steering(row) for row in connection.execute(query).mappings()]


def _steering(row: rows.Row) -> Steering:
    content: dict[str, Any] = row["content"]
    return Steering(
        steering_id=row["steering_id"],
        session_id=row["session_id"],
        at=row["at"],
        by=row["said_by"],
        word=Word(kind=Kind(row["kind"]), **content),
        taken_at=row["taken_at"],
    )
