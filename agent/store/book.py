"""`SessionBook`: what one session process records. Every write checks the fence in its own transaction.

The trials are kept in memory as well: the holder of the newest fence is the only writer, so the copy is exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa

from agent.planner.history import History, Proposal
from agent.store import rows
from agent.store.schema import writing
from agent.store.store import AgentStore
from agent.store.tables import activity, looks, plan_revisions, sessions, trials
from agent.store.views import FinalResult, Purpose, SessionState, SessionView, TrialState, TrialView


class FenceLost(Exception):
    """Another process has claimed the session; this one must stop and touch nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of activity to record."""

    step: str
    text: str
    trial_id: str | None = None
    job_id: str | None = None


class SessionBook:
    def __init__(self, store: AgentStore, session_id: str, fence: int) -> None:
        self.store = store
        self.session_id = session_id
        self.fence = fence
        self._trials = {trial.trial_id: trial for trial in store.trials(session_id)}

    @contextmanager
    def _writing(self) -> Iterator[sa.Connection]:
        with writing(self.store.engine) as connection:
            query = sa.select(sessions.c.fence).where(sessions.c.session_id == self.session_id).with_for_update()
            fence = connection.execute(query).scalar()
            if fence != self.fence:
                raise FenceLost(f"{self.session_id}: fence {self.fence} is older than {fence}")
            yield connection

    def session(self) -> SessionView:
        return self.store.session(self.session_id)

    def history(self) -> History:
        return History.of(self._trials.values())

    def trial(self, trial_id: str) -> TrialView:
        return self._trials[trial_id]

    def propose(self, proposals: Sequence[Proposal], lines: Iterable[Line] = ()) -> list[TrialView]:
        """Number the proposals and keep them ready."""
        if not proposals:
            return []
        with self._writing() as connection:
            first = int(connection.execute(self._select(sessions.c.next_number)).scalar_one())
            made = [
                self._new_trial(first + offset, proposal, self.store.clock())
                for offset, proposal in enumerate(proposals)
            ]
            connection.execute(sa.insert(trials), [rows.trial_row(trial) for trial in made])
            n_search = sum(1 for p in proposals if p.purpose is Purpose.SEARCH)
            self._update_session(connection, next_number=first + len(made), n_trials=sessions.c.n_trials + n_search)
            self._say(connection, lines)
        self._keep(made)
        return made

    def withdraw(self, unwanted: Sequence[TrialView], lines: Iterable[Line] = ()) -> None:
        """Delete proposals that were never submitted; their numbers are not used again."""
        ids = [t.trial_id for t in unwanted if t.state is TrialState.PROPOSED and not t.is_submitting]
        if not ids:
            return
        n_search = sum(1 for t in unwanted if t.trial_id in ids and t.purpose is Purpose.SEARCH)
        with self._writing() as connection:
            connection.execute(sa.delete(trials).where(trials.c.trial_id.in_(ids)))
            connection.execute(sa.delete(looks).where(looks.c.trial_id.in_(ids)))
            self._update_session(connection, n_trials=sessions.c.n_trials - n_search)
            self._say(connection, lines)
        for trial_id in ids:
            self._trials.pop(trial_id, None)

    def intend(self, ready: Sequence[TrialView], held_out_metric: str | None) -> list[TrialView]:
        """Record the intent to submit, and for held-out looks the line in the ledger, before anything is sent."""
        fresh = [trial for trial in ready if not trial.is_submitting]
        if not fresh:
            return list(ready)
        changed = [replace(trial, is_submitting=True) for trial in fresh]
        with self._writing() as connection:
            self._save(connection, changed)
            for trial in changed:
                if trial.purpose is Purpose.HELD_OUT and held_out_metric is not None:
                    self._enter_look(connection, trial, held_out_metric)
        self._keep(changed)
        return [self._trials[trial.trial_id] for trial in ready]

    def launched(self, job_ids: Mapping[str, str], lines: Iterable[Line] = ()) -> None:
        """Record the answers to submissions: job ids by trial id."""
        now = self.store.clock()
        changed = [
            replace(
                self._trials[trial_id],
                state=TrialState.LAUNCHED,
                is_submitting=False,
                job_id=job_id,
                launched_at=now,
            )
            for trial_id, job_id in job_ids.items()
        ]
        self._change(changed, lines)

    def ended(self, changed: Sequence[TrialView], lines: Iterable[Line] = ()) -> None:
        """Record values and failures of trials (already replaced by the caller)."""
        self._change(changed, lines, is_spending=True)

    def recalled(self, changed: Sequence[TrialView], lines: Iterable[Line] = ()) -> None:
        """Record that queued jobs are asked back, or that their trials are ready again."""
        self._change(changed, lines)

    def save_plan(self, revision: int, phase: str, reason: str, plan_json: str, lines: Iterable[Line] = ()) -> None:
        with self._writing() as connection:
            key = (plan_revisions.c.session_id == self.session_id) & (plan_revisions.c.revision == revision)
            connection.execute(sa.delete(plan_revisions).where(key))
            connection.execute(
                sa.insert(plan_revisions).values(
                    session_id=self.session_id,
                    revision=revision,
                    at=self.store.clock(),
                    phase=phase,
                    reason=reason,
                    plan_json=plan_json,
                )
            )
            self._update_session(connection, plan_revision=revision)
            self._say(connection, lines)

    def unpublished_plans(self) -> list[tuple[int, str]]:
        """Revisions whose artifact was not handed to the runtime yet: number and JSON."""
        query = (
            sa.select(plan_revisions.c.revision, plan_revisions.c.plan_json)
            .where(plan_revisions.c.session_id == self.session_id, sa.not_(plan_revisions.c.is_published))
            .order_by(plan_revisions.c.revision)
        )
        with self.store.engine.connect() as connection:
            return [(int(row.revision), str(row.plan_json)) for row in connection.execute(query)]

    def published_plan(self, revision: int) -> None:
        with self._writing() as connection:
            key = (plan_revisions.c.session_id == self.session_id) & (plan_revisions.c.revision == revision)
            connection.execute(sa.update(plan_revisions).where(key).values(is_published=True))

    def set_runs(self, run_id: str, hypothesis_run_id: str) -> None:
        with self._writing() as connection:
            self._update_session(connection, run_id=run_id, hypothesis_run_id=hypothesis_run_id)

    def add_wall_seconds(self, seconds: float) -> None:
        with self._writing() as connection:
            self._update_session(connection, wall_seconds=sessions.c.wall_seconds + seconds)

    def say(self, lines: Sequence[Line]) -> None:
        if lines:
            with self._writing() as connection:
                self._say(connection, lines)

    def conclude(
        self,
        state: SessionState,
        message: str,
        *,
        result: FinalResult | None = None,
        report_path: str | None = None,
        lines: Iterable[Line] = (),
    ) -> None:
        """Set the state in which the process leaves the session, and give the lock back."""
        values: dict[str, Any] = {"state": state.value, "message": message, "pid": None, "pid_started_at": None}
        if state in (SessionState.FINISHED, SessionState.FAILED):
            values["ended_at"] = self.store.clock()
        if result is not None:
            values["result"] = rows.result_to_json(result)
        if report_path is not None:
            values["report_path"] = report_path
        with self._writing() as connection:
            self._update_session(connection, **values)
            self._say(connection, lines)

    def save_result(self, result: FinalResult | None, report_path: str | None = None) -> None:
        """Record what was found while the session is still running, so that the report can be built from it."""
        with self._writing() as connection:
            if result is not None:
                self._update_session(connection, result=rows.result_to_json(result))
            if report_path is not None:
                self._update_session(connection, report_path=report_path)

    def release(self) -> None:
        """Give the lock back and leave the state as it is: whoever claims next goes on."""
        with self._writing() as connection:
            self._update_session(connection, pid=None, pid_started_at=None)

    def _new_trial(self, number: int, proposal: Proposal, now: float) -> TrialView:
        return TrialView(
            trial_id=f"{self.session_id}-t{number}",
            session_id=self.session_id,
            number=number,
            configuration=proposal.configuration,
            params=dict(proposal.params),
            seed=proposal.seed,
            purpose=proposal.purpose,
            suggested_by=proposal.suggested_by,
            why=proposal.why,
            state=TrialState.PROPOSED,
            job_id=None,
            value=None,
            note=None,
            exit_reason=None,
            device_seconds=0.0,
            proposed_at=now,
            launched_at=None,
            ended_at=None,
        )

    def _enter_look(self, connection: sa.Connection, trial: TrialView, metric: str) -> None:
        mine = looks.c.session_id == self.session_id
        known = connection.execute(sa.select(looks.c.look).where(looks.c.trial_id == trial.trial_id)).scalar()
        if known is not None:
            return
        last = connection.execute(sa.select(sa.func.max(looks.c.look)).where(mine)).scalar() or 0
        connection.execute(
            sa.insert(looks).values(
                session_id=self.session_id,
                look=last + 1,
                at=self.store.clock(),
                metric=metric,
                configuration=trial.configuration,
                trial_id=trial.trial_id,
            )
        )

    def _change(self, changed: Sequence[TrialView], lines: Iterable[Line], *, is_spending: bool = False) -> None:
        if not changed:
            self.say(list(lines))
            return
        with self._writing() as connection:
            self._save(connection, changed)
            if is_spending:
                spent = sum(t.device_seconds - self._trials[t.trial_id].device_seconds for t in changed)
                self._update_session(connection, device_seconds=sessions.c.device_seconds + spent)
            self._say(connection, lines)
        self._keep(changed)

    def _save(self, connection: sa.Connection, changed: Sequence[TrialView]) -> None:
        for trial in changed:
            row = rows.trial_row(trial)
            connection.execute(sa.update(trials).where(trials.c.trial_id == row.pop("trial_id")).values(**row))

    def _keep(self, changed: Iterable[TrialView]) -> None:
        for trial in changed:
            self._trials[trial.trial_id] = trial

    def _select(self, column: sa.Column[Any]) -> sa.Select[tuple[Any]]:
        return sa.select(column).where(sessions.c.session_id == self.session_id)

    def _update_session(self, connection: sa.Connection, **values: Any) -> None:
        connection.execute(sa.update(sessions).where(sessions.c.session_id == self.session_id).values(**values))

    def _say(self, connection: sa.Connection, lines: Iterable[Line]) -> None:
        now = self.store.clock()
        said = [
            {
                "session_id": self.session_id,
                "at": now,
                "step": line.step,
                "text": line.text,
                "trial_id": line.trial_id,
                "job_id": line.job_id,
            }
            for line in lines
        ]
        if said:
            connection.execute(sa.insert(activity), said)
