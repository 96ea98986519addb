"""`SessionRecord`: the session's own row, its plan revisions and its activity, as its process writes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from agent.store import rows
from agent.store.fenced import FencedWriter, Line
from agent.store.tables import plan_revisions, suggestions
from agent.store.views import FinalResult, SessionState, SessionView, SuggestionView


class SessionRecord:
    def __init__(self, writer: FencedWriter) -> None:
        self._writer = writer

    def session(self) -> SessionView:
        return self._writer.store.session(self._writer.session_id)

    def suggestions(self) -> list[SuggestionView]:
        """People's ideas for this session, oldest first."""
        return self._writer.store.suggestions(self._writer.session_id)

    def newest_suggestion(self) -> int:
        """Number of the newest idea for this session; 0: there is none."""
        mine = suggestions.c.session_id == self._writer.session_id
        with self._writer.store.engine.connect() as connection:
            newest = connection.execute(sa.select(sa.func.max(suggestions.c.suggestion_id)).where(mine)).scalar()
        return newest or 0

    def say(self, lines: Sequence[Line]) -> None:
        if lines:
            with self._writer.writing() as connection:
                self._writer.say(connection, lines)

    def save_plan(self, revision: int, phase: str, reason: str, plan_json: str, lines: Sequence[Line] = ()) -> None:
        """Write a revision; the same number again replaces it."""
        with self._writer.writing() as connection:
            write_revision(self._writer, connection, revision, phase, reason, plan_json)
            self._writer.say(connection, lines)

    def unpublished_plans(self) -> list[tuple[int, str]]:
        """Revisions whose artifact was not handed to the runtime yet: number and JSON."""
        query = (
            sa.select(plan_revisions.c.revision, plan_revisions.c.plan_json)
            .where(plan_revisions.c.session_id == self._writer.session_id, sa.not_(plan_revisions.c.is_published))
            .order_by(plan_revisions.c.revision)
        )
        with self._writer.store.engine.connect() as connection:
            return [(int(row.revision), str(row.plan_json)) for row in connection.execute(query)]

    def published_plan(self, revision: int) -> None:
        with self._writer.writing() as connection:
            is_it = _is_revision(self._writer.session_id, revision)
            connection.execute(sa.update(plan_revisions).where(is_it).values(is_published=True))

    def set_runs(self, run_id: str, hypothesis_run_id: str) -> None:
        with self._writer.writing() as connection:
            self._writer.set(connection, run_id=run_id, hypothesis_run_id=hypothesis_run_id)

    def add_wall_seconds(self, seconds: float) -> None:
        with self._writer.writing() as connection:
            self._writer.add(connection, wall_seconds=seconds)

    def save_result(self, result: FinalResult) -> None:
        """Record what was found while the session still runs, so that the report can be built from it."""
        with self._writer.writing() as connection:
            self._writer.set(connection, result=rows.result_to_json(result))

    def conclude(
        self, state: SessionState, message: str, *, report_path: str | None = None, lines: Sequence[Line] = ()
    ) -> None:
        """Set the state in which the process leaves the session, and give the lock back."""
        values: dict[str, Any] = {"state": state.value, "message": message, "pid": None, "pid_started_at": None}
        if state in (SessionState.FINISHED, SessionState.FAILED):
            values["ended_at"] = self._writer.store.clock()
        if report_path is not None:
            values["report_path"] = report_path
        with self._writer.writing() as connection:
            self._writer.set(connection, **values)
            self._writer.say(connection, lines)

    def release(self) -> None:
        """Give the lock back and leave the state as it is: whoever claims next goes on."""
        with self._writer.writing() as connection:
            self._writer.set(connection, pid=None, pid_started_at=None)


def write_revision(
    writer: FencedWriter, connection: sa.Connection, revision: int, phase: str, reason: str, plan_json: str
) -> None:
    """Write a revision of the plan in a transaction of the writer's; the same number again replaces it."""
    connection.execute(sa.delete(plan_revisions).where(_is_revision(writer.session_id, revision)))
    connection.execute(
        sa.insert(plan_revisions).values(
            session_id=writer.session_id,
            revision=revision,
            at=writer.store.clock(),
            phase=phase,
            reason=reason,
            plan_json=plan_json,
        )
    )
    writer.set(connection, plan_revision=revision)


def _is_revision(session_id: str, revision: int) -> sa.ColumnElement[bool]:
    return (plan_revisions.c.session_id == session_id) & (plan_revisions.c.revision == revision)
