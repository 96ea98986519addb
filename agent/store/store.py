"""`AgentStore`: what everybody may read of the agent, and the few requests that other processes may write.

The command line, the service and the session processes open the same database; every write is one short transaction
and may be repeated. What a session itself records goes through `agent.store.book.SessionBook`, which is fenced.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import sqlalchemy as sa

from agent.store import rows
from agent.store.faults import why_unusable
from agent.store.processes import is_alive, started_at
from agent.store.schema import migrate, open_engine, writing
from agent.store.tables import activity, looks, plan_revisions, sessions, suggestions, trials
from agent.store.views import (
    AGAIN,
    ActivityView,
    Expected,
    LookView,
    ParamValue,
    PlanView,
    SessionState,
    SessionView,
    SuggestedEdit,
    SuggestionView,
    TrialState,
    TrialView,
)
from agent.task import Task


class SessionNotFound(Exception):
    """There is no session of that id."""


class TrialNotFound(Exception):
    """There is no trial of that id."""


class SessionHeld(Exception):
    """Another living process works on the session."""


class SessionNotRunnable(Exception):
    """The session is stopped, finished or failed."""


def _make_private(path: Path) -> None:
    """Make the file for the owner alone: task files hold environment variables. SQLite's log gets the same mode.

    Where it can not be made, the database says why it can not be opened. A file that is there is not touched: to close
    it again would take the locks of all this process's connections to it, and another process would delete their log
    (https://www.sqlite.org/howtocorrupt.html, section 2.2).
    """
    with suppress(OSError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


class AgentStore:
    def __init__(self, engine: sa.Engine, *, clock: Callable[[], float] = time.time) -> None:
        self.engine = engine
        self.clock = clock

    @classmethod
    def open(cls, home: Path, *, url: str | None = None, clock: Callable[[], float] = time.time) -> AgentStore:
        """Open (and if need be create or migrate) the database: `home/agent.db`, or PostgreSQL by URL.

        Raises:
            StoreUnusable: it is damaged, of a newer version, or may not be written.
        """
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        if url is None:
            _make_private(home / "agent.db")
        engine = open_engine(url or f"sqlite:///{home / 'agent.db'}")
        try:
            migrate(engine, lock_path=home / "agent.db.lock" if engine.dialect.name == "sqlite" else None)
        except sa.exc.DBAPIError as error:
            reason = why_unusable(error, engine.url.render_as_string(hide_password=True).removeprefix("sqlite:///"))
            if reason is None:
                raise
            raise reason from error
        return cls(engine, clock=clock)

    def close(self) -> None:
        self.engine.dispose()

    # What can be read.

    def sessions(self) -> list[SessionView]:
        """All sessions, newest first."""
        with self.engine.connect() as connection:
            found = connection.execute(sa.select(sessions).order_by(sessions.c.number.desc())).mappings()
            return [rows.session_view(row) for row in found]

    def session(self, session_id: str) -> SessionView:
        """
        Raises:
            SessionNotFound: the message names the sessions that exist.
        """
        with self.engine.connect() as connection:
            row = connection.execute(sa.select(sessions).where(sessions.c.session_id == session_id)).mappings().first()
            if row is None:
                known = connection.execute(sa.select(sessions.c.session_id).order_by(sessions.c.number)).scalars()
                raise SessionNotFound(f"no session {session_id!r}; there are: {', '.join(known) or 'none yet'}")
            return rows.session_view(row)

    def trials(self, session_id: str) -> list[TrialView]:
        """In the order of their numbers."""
        query = sa.select(trials).where(trials.c.session_id == session_id).order_by(trials.c.number)
        with self.engine.connect() as connection:
            return [rows.trial_view(row) for row in connection.execute(query).mappings()]

    def trial(self, trial_id: str) -> TrialView:
        """
        Raises:
            TrialNotFound: the message says how to find its id.
        """
        with self.engine.connect() as connection:
            row = connection.execute(sa.select(trials).where(trials.c.trial_id == trial_id)).mappings().first()
        if row is None:
            raise TrialNotFound(
                f"no trial {trial_id!r}; find its id with: nightlab trial search, or trial list SESSION"
            )
        return rows.trial_view(row)

    def activity(self, session_id: str, limit: int = 50) -> list[ActivityView]:
        """The last `limit` lines, oldest first."""
        query = (
            sa.select(activity)
            .where(activity.c.session_id == session_id)
            .order_by(activity.c.id.desc())
            .limit(max(limit, 0))
        )
        with self.engine.connect() as connection:
            found = connection.execute(query).mappings().all()
        return [rows.activity_view(row) for row in reversed(found)]

    def plans(self, session_id: str) -> list[PlanView]:
        """Every revision, oldest first."""
        query = (
            sa.select(plan_revisions)
            .where(plan_revisions.c.session_id == session_id)
            .order_by(plan_revisions.c.revision)
        )
        with self.engine.connect() as connection:
            return [rows.plan_view(row) for row in connection.execute(query).mappings()]

    def looks(self, session_id: str) -> list[LookView]:
        """The ledger of held-out looks, in order."""
        query = (
            sa.select(looks, trials.c.value)
            .select_from(looks.outerjoin(trials, trials.c.trial_id == looks.c.trial_id))
            .where(looks.c.session_id == session_id)
            .order_by(looks.c.look)
        )
        with self.engine.connect() as connection:
            return [rows.look_view(row) for row in connection.execute(query).mappings()]

    def suggestions(self, session_id: str) -> list[SuggestionView]:
        """What people suggested to a session, oldest first."""
        query = (
            sa.select(suggestions).where(suggestions.c.session_id == session_id).order_by(suggestions.c.suggestion_id)
        )
        with self.engine.connect() as connection:
            return [rows.suggestion_view(row) for row in connection.execute(query).mappings()]

    def runnable(self) -> list[str]:
        """Ids of the sessions that a process should work on, oldest first."""
        wanted = [SessionState.RUNNING.value, SessionState.STOPPING.value]
        query = sa.select(sessions.c.session_id).where(sessions.c.state.in_(wanted)).order_by(sessions.c.number)
        with self.engine.connect() as connection:
            return list(connection.execute(query).scalars())

    def n_ended_trials(self, session_id: str) -> int:
        """How far a session is: trials that were measured or are invalid."""
        ended = trials.c.state.in_([TrialState.MEASURED.value, TrialState.INVALID.value])
        query = sa.select(sa.func.count()).where(trials.c.session_id == session_id, ended)
        with self.engine.connect() as connection:
            return int(connection.execute(query).scalar_one())

    def is_held(self, session_id: str) -> bool:
        """Whether a living process works on it."""
        query = sa.select(sessions.c.pid, sessions.c.pid_started_at).where(sessions.c.session_id == session_id)
        with self.engine.connect() as connection:
            row = connection.execute(query).first()
        return row is not None and is_alive(row.pid, row.pid_started_at)

    # What other processes may ask for.

    def create_session(
        self,
        task: Task,
        *,
        request_token: str | None = None,
        finish_by: float | None = None,
        night_id: str | None = None,
    ) -> SessionView:
        """A new session in state running; the agent service starts its process.

        Args:
            request_token: the same token returns the session that was made with it.
            finish_by: seconds since the epoch, by when nothing of it may run any more.
            night_id: the night of a sweep that it belongs to.
        """
        with writing(self.engine) as connection:
            if request_token is not None:
                known = sa.select(sessions.c.session_id).where(sessions.c.request_token == request_token)
                found = connection.execute(known).scalar()
                if found is not None:
                    return self._view(connection, found)
            number = 1 + (connection.execute(sa.select(sa.func.max(sessions.c.number))).scalar() or 0)
            connection.execute(
                sa.insert(sessions).values(
                    session_id=f"s{number}",
                    number=number,
                    key=uuid.uuid4().hex[:12],
                    request_token=request_token,
                    task_name=task.task,
                    task_json=task.model_dump_json(),
                    state=SessionState.RUNNING.value,
                    created_at=self.clock(),
                    finish_by=finish_by,
                    night_id=night_id,
                )
            )
            return self._view(connection, f"s{number}")

    def suggest(
        self,
        session_id: str,
        params: dict[str, ParamValue],
        *,
        why: str,
        suggested_by: str = "person",
        arm: str | None = None,
        expected: Expected | None = None,
        edit: SuggestedEdit | None = None,
    ) -> SuggestionView:
        """Leave an idea for a session; it takes it up at its next wake-up.

        Args:
            arm: None: a person's idea, which goes first; else the proposer of the portfolio that it belongs to.

        Raises:
            SessionNotFound: as `session`.
        """
        self.session(session_id)
        values = {
            "session_id": session_id,
            "at": self.clock(),
            "params": params,
            "why": why,
            "suggested_by": suggested_by,
            "arm": arm,
            "expected": None if expected is None else asdict(expected),
            "edit": None if edit is None else asdict(edit),
        }
        with writing(self.engine) as connection:
            made = connection.execute(sa.insert(suggestions).values(**values).returning(suggestions))
            return rows.suggestion_view(made.mappings().one())

    def suggest_again(self, trial_id: str, n: int, *, by: str) -> list[SuggestionView]:
        """Have a session run the configuration of one of its trials again, `n` times, each on a seed of its own.

        Raises:
            TrialNotFound: as `trial`.
        """
        session_id, again = self.trial(trial_id).session_id, SuggestedEdit(text="", parent=trial_id)
        return [
            self.suggest(session_id, {}, why="a person asks for it", suggested_by=by[:60], arm=AGAIN, edit=again)
            for _ in range(n)
        ]

    def request_stop(self, session_id: str, *, by: str | None = None) -> SessionView:
        """Ask a running session to stop in order. Stopping, stopped or ended ones stay as they are.

        Args:
            by: who wants it; said in the session's activity where it changes something. None: nothing is said.

        Raises:
            SessionNotFound: as `session`.
        """
        said = None if by is None else f"{by} asks it to stop"
        return self._move(session_id, {SessionState.RUNNING}, SessionState.STOPPING, "asked to stop", said=said)

    def request_resume(
        self,
        session_id: str,
        *,
        finish_by: float | None = None,
        night_id: str | None = None,
        by: str | None = None,
    ) -> SessionView:
        """Set a stopped, stopping or failed session running again; a running one stays so.

        A session that failed without any value gets its trials back: each is launched anew, as a new job. The hour by
        which it has to be over and the night that it belongs to are set anew too; None: none. A running one, which may
        be one that nobody was there to end by its hour, gets them where they are given.

        Args:
            by: as in `request_stop`.

        Raises:
            SessionNotFound: as `session`.
            SessionNotRunnable: it is finished.
        """
        before = {SessionState.STOPPED, SessionState.STOPPING, SessionState.FAILED}
        if finish_by is not None:
            before.add(SessionState.RUNNING)
        if self.session(session_id).state is SessionState.FAILED:
            self._give_back_trials(session_id)
        belongs: dict[str, float | str | None] = {"finish_by": finish_by, "night_id": night_id}
        said = None if by is None else f"{by} has it go on"
        view = self._move(session_id, before, SessionState.RUNNING, "", said=said, ended_at=None, **belongs)
        if view.state is SessionState.FINISHED:
            raise SessionNotRunnable(f"{session_id} is finished; start a new session with: nightlab research start")
        return view

    def fail(self, session_id: str, message: str) -> SessionView:
        """Give up a session that can not be kept alive; used by the service."""
        before = {SessionState.RUNNING, SessionState.STOPPING}
        return self._move(session_id, before, SessionState.FAILED, message, ended_at=self.clock())

    def claim(self, session_id: str, pid: int) -> int:
        """Take the session's lock for a process; returns the new fencing number, higher than every earlier one.

        Raises:
            SessionNotFound: as `session`.
            SessionHeld: another living process has it.
            SessionNotRunnable: it is neither running nor stopping.
        """
        view = self.session(session_id)
        with writing(self.engine) as connection:
            row = connection.execute(self._locked(session_id)).mappings().one()
            state = SessionState(row["state"])
            if state not in (SessionState.RUNNING, SessionState.STOPPING):
                raise SessionNotRunnable(f"{session_id} is {state}; resume it with: nightlab research resume")
            if row["pid"] != pid and is_alive(row["pid"], row["pid_started_at"]):
                raise SessionHeld(f"{view.session_id} is held by process {row['pid']}")
            fence = int(row["fence"]) + 1
            connection.execute(
                sa.update(sessions)
                .where(sessions.c.session_id == session_id)
                .values(fence=fence, pid=pid, pid_started_at=started_at(pid))
            )
        return fence

    def _give_back_trials(self, session_id: str) -> None:
        mine = trials.c.session_id == session_id
        measured = sa.select(sa.func.count()).where(mine, trials.c.state == TrialState.MEASURED.value)
        blank = dict.fromkeys(("job_id", "value", "note", "exit_reason", "launched_at", "ended_at"))
        invalid = sa.select(trials).where(mine, trials.c.state == TrialState.INVALID.value)
        with writing(self.engine) as connection:
            state = connection.execute(sa.select(sessions.c.state).where(sessions.c.session_id == session_id)).scalar()
            if state != SessionState.FAILED.value or connection.execute(measured).scalar():
                return
            again = sa.update(trials).values(
                state=TrialState.PROPOSED.value,
                submission=trials.c.submission + 1,
                is_submitting=False,
                is_recalled=False,
                device_seconds=0.0,
                **blank,
            )
            for row in connection.execute(invalid).mappings().all():
                origin = {name: row["facts"][name] for name in rows.ORIGIN if name in row["facts"]}
                connection.execute(again.where(trials.c.trial_id == row["trial_id"]).values(facts=origin))

    def _move(
        self,
        session_id: str,
        before: set[SessionState],
        after: SessionState,
        message: str,
        *,
        said: str | None = None,
        **more: float | str | None,
    ) -> SessionView:
        self.session(session_id)
        with writing(self.engine) as connection:
            moved = connection.execute(
                sa.update(sessions)
                .where(sessions.c.session_id == session_id, sessions.c.state.in_([s.value for s in before]))
                .values(state=after.value, message=message, **more)
            )
            if moved.rowcount and said is not None:
                line = {"session_id": session_id, "at": self.clock(), "step": "session", "text": said}
                connection.execute(sa.insert(activity).values(**line))
            return self._view(connection, session_id)

    def _locked(self, session_id: str) -> sa.Select[tuple[object, ...]]:
        return sa.select(sessions).where(sessions.c.session_id == session_id).with_for_update()

    def _view(self, connection: sa.Connection, session_id: str) -> SessionView:
        return rows.session_view(
            connection.execute(sa.select(sessions).where(sessions.c.session_id == session_id)).mappings().one()
        )
