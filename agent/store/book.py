"""`TrialBook`: the trials of one session, as its own process writes them.

They are kept in memory as well: the holder of the newest fence is the only writer, so the copy is exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import sqlalchemy as sa

from agent.planner.history import History, Proposal
from agent.store import rows
from agent.store.fenced import FencedWriter, Line
from agent.store.tables import looks, sessions, suggestions, trials
from agent.store.views import Purpose, TrialState, TrialView

_NEXT_NUMBER = sa.select(sessions.c.next_number).where(sessions.c.session_id == sa.bindparam("mine"))
_INSERT = sa.insert(trials)
_UPDATE = sa.update(trials).where(trials.c.trial_id == sa.bindparam("which"))
_ANSWER = (
    sa.update(suggestions)
    .where(suggestions.c.suggestion_id == sa.bindparam("which"))
    .values(trial_id=sa.bindparam("made"), note=sa.bindparam("said"))
)
_CHANGING = (
    "state",
    "job_id",
    "value",
    "note",
    "exit_reason",
    "device_seconds",
    "launched_at",
    "ended_at",
    "submission",
    "is_submitting",
    "is_recalled",
    "facts",
)
"""Columns that may change after a trial was proposed."""


class TrialBook:
    def __init__(self, writer: FencedWriter) -> None:
        self._writer = writer
        self._trials = {trial.trial_id: trial for trial in writer.store.trials(writer.session_id)}
        self._history: History | None = None

    @property
    def session_id(self) -> str:
        return self._writer.session_id

    @property
    def fence(self) -> int:
        return self._writer.fence

    def history(self) -> History:
        if self._history is None:
            self._history = History.of(self._trials.values())
        return self._history

    def trial(self, trial_id: str) -> TrialView:
        return self._trials[trial_id]

    def propose(
        self, proposals: Sequence[Proposal], lines: Iterable[Line] = (), suggestion_ids: Sequence[int | None] = ()
    ) -> list[TrialView]:
        """Number the proposals and keep them ready; `suggestion_ids` are those that they were made of, in order."""
        if not proposals:
            return []
        proposals = [self._with_code(proposal) for proposal in proposals]
        writer = self._writer
        with writer.writing() as connection:
            first = int(connection.execute(_NEXT_NUMBER, {"mine": self.session_id}).scalar_one())
            made = [
                proposal.as_trial(
                    number,
                    trial_id=f"{self.session_id}-t{number}",
                    session_id=self.session_id,
                    proposed_at=writer.store.clock(),
                )
                for number, proposal in enumerate(proposals, start=first)
            ]
            connection.execute(_INSERT, [rows.trial_row(trial) for trial in made])
            writer.set(connection, next_number=first + len(made))
            writer.add(connection, trials=sum(1 for p in proposals if p.purpose is Purpose.SEARCH))
            for suggestion_id, trial in zip(suggestion_ids, made, strict=False):
                if suggestion_id is not None:
                    connection.execute(_ANSWER, {"which": suggestion_id, "made": trial.trial_id, "said": None})
            writer.say(connection, lines)
        self._keep(made)
        return made

    def _with_code(self, proposal: Proposal) -> Proposal:
        """A configuration that is known already runs the code that it ran before, whoever asks for it."""
        code = self.history().code_of(proposal.configuration) if proposal.facts.edited is None else None
        return proposal if code is None else replace(proposal, facts=replace(proposal.facts, edited=code))

    def refuse(self, notes: Sequence[tuple[int, str]], lines: Iterable[Line] = ()) -> None:
        """Write beside suggestions, by their ids, why no trial was made of them."""
        if not notes:
            return
        with self._writer.writing() as connection:
            for suggestion_id, note in notes:
                connection.execute(_ANSWER, {"which": suggestion_id, "made": None, "said": note})
            self._writer.say(connection, lines)

    def withdraw(
        self,
        unwanted: Sequence[TrialView],
        lines: Iterable[Line] = (),
        *,
        note: str = "withdrawn before it was launched: see the activity",
    ) -> None:
        """Delete proposals that were never submitted; their numbers are not used again.

        Args:
            note: what is written beside suggestions that they were made of.
        """
        gone = [trial for trial in unwanted if trial.state is TrialState.PROPOSED and not trial.is_submitting]
        if not gone:
            return
        ids = [trial.trial_id for trial in gone]
        with self._writer.writing() as connection:
            connection.execute(sa.delete(trials).where(trials.c.trial_id.in_(ids)))
            of_these = sa.update(suggestions).where(suggestions.c.trial_id.in_(ids))
            connection.execute(of_these.values(trial_id=None, note=note))
            self._writer.add(connection, trials=-sum(1 for trial in gone if trial.purpose is Purpose.SEARCH))
            self._writer.say(connection, lines)
        for trial_id in ids:
            self._trials.pop(trial_id, None)
        self._history = None

    def intend(self, ready: Sequence[TrialView], held_out_metric: str | None) -> list[TrialView]:
        """Record the intent to submit, and for held-out looks the line in the ledger, before anything is sent."""
        changed = [replace(trial, is_submitting=True) for trial in ready if not trial.is_submitting]
        if changed:
            with self._writer.writing() as connection:
                self._save(connection, changed)
                for trial in changed:
                    if trial.purpose is Purpose.HELD_OUT and held_out_metric is not None:
                        self._enter_look(connection, trial, held_out_metric)
            self._keep(changed)
        return [self._trials[trial.trial_id] for trial in ready]

    def record(self, changed: Sequence[TrialView], lines: Sequence[Line] = ()) -> None:
        """Record trials as the caller has replaced them, and what is to be said about it, in one transaction."""
        if not changed and not lines:
            return
        more = sum(trial.device_seconds - self._trials[trial.trial_id].device_seconds for trial in changed)
        with self._writer.writing() as connection:
            self._save(connection, changed)
            self._writer.add(connection, device_seconds=more)
            self._writer.say(connection, lines)
        self._keep(changed)

    def _enter_look(self, connection: sa.Connection, trial: TrialView, metric: str) -> None:
        known = sa.select(looks.c.look).where(looks.c.trial_id == trial.trial_id)
        if connection.execute(known).scalar() is not None:
            return
        last = sa.select(sa.func.max(looks.c.look)).where(looks.c.session_id == self.session_id)
        connection.execute(
            sa.insert(looks).values(
                session_id=self.session_id,
                look=(connection.execute(last).scalar() or 0) + 1,
                at=self._writer.store.clock(),
                metric=metric,
                configuration=trial.configuration,
                trial_id=trial.trial_id,
            )
        )

    def _save(self, connection: sa.Connection, changed: Sequence[TrialView]) -> None:
        params = []
        for trial in changed:
            row = rows.trial_row(trial)
            params.append({"which": trial.trial_id, **{name: row[name] for name in _CHANGING}})
        if params:
            connection.execute(_UPDATE, params)

    def _keep(self, changed: Sequence[TrialView]) -> None:
        for trial in changed:
            self._trials[trial.trial_id] = trial
        if self._history is not None:
            self._history = self._history.after(changed)
