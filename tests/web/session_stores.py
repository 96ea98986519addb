"""A store that holds the made-up session of `agent.report.sample`, with what people said to it; no run is needed."""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import cache

import sqlalchemy as sa

from agent.report.facts import ReportInput
from agent.report.sample import sample_report_input
from agent.steering.word import Kind, Word
from agent.store import rows
from agent.store.steering import SteeringStore
from agent.store.store import AgentStore
from agent.store.tables import activity, plan_revisions, sessions, trials
from agent.store.views import SessionState, TrialView


def filled(store: AgentStore, *, is_running: bool = True) -> ReportInput:
    """Session s1 as in the sample; running unless told otherwise, so that it can be steered."""
    facts = sample()
    store.create_session(facts.task)
    put_trials(store, facts.trials)
    assert facts.plan is not None
    told = facts.session
    with store.engine.begin() as connection:
        connection.execute(sa.insert(plan_revisions).values(session_id="s1", is_published=True, **asdict(facts.plan)))
        connection.execute(sa.insert(activity), [{"session_id": "s1", **asdict(line)} for line in facts.activity])
        connection.execute(
            sa.update(sessions).values(
                state=(SessionState.RUNNING if is_running else told.state).value,
                result=None if told.result is None or is_running else json.loads(json.dumps(asdict(told.result))),
                created_at=told.created_at,
                ended_at=None if is_running else told.ended_at,
                plan_revision=told.plan_revision,
                n_trials=told.n_trials,
                device_seconds=told.device_seconds,
                wall_seconds=told.wall_seconds,
            )
        )
    return facts


@cache
def sample() -> ReportInput:
    return sample_report_input()


def put_trials(store: AgentStore, made: tuple[TrialView, ...] | list[TrialView]) -> None:
    with store.engine.begin() as connection:
        connection.execute(sa.insert(trials), [rows.trial_row(trial) for trial in made])


def told(store: AgentStore, *words: Word, by: str = "ann") -> None:
    SteeringStore(store).say("s1", list(words), by=by)


def pause() -> Word:
    return Word(kind=Kind.PAUSE, text="the disk is being moved")
