"""The agent's store: sessions, claims and fences, and what a session process may write."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa
from agent_stores import postgres_url, store
from agent_worlds import a_task

from agent.planner.configuration import configuration_id, default_params
from agent.planner.history import Proposal
from agent.store.book import TrialBook
from agent.store.fenced import FencedWriter, FenceLost, Line
from agent.store.record import SessionRecord
from agent.store.schema import open_engine
from agent.store.store import AgentStore, SessionHeld, SessionNotFound, SessionNotRunnable
from agent.store.tables import HEAD, metadata
from agent.store.views import Expected, FinalResult, Interval, Purpose, SessionState, TrialFacts, TrialState

__all__ = ["postgres_url", "store"]  # fixtures


@pytest.fixture
def writer(store: AgentStore) -> FencedWriter:
    store.create_session(a_task())
    return FencedWriter(store, "s1", store.claim("s1", os.getpid()))


@pytest.fixture
def dead_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.fixture
def other_pid() -> Iterator[int]:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process.pid
    process.communicate(b"\n")


def a_proposal(purpose: Purpose = Purpose.SEARCH, seed: int = 0) -> Proposal:
    params = default_params(a_task())
    return Proposal(
        params=params,
        configuration=configuration_id(params),
        seed=seed,
        purpose=purpose,
        suggested_by="test",
        why="because",
    )


def test_sessions_are_numbered_and_listed_newest_first(store: AgentStore) -> None:
    assert [store.create_session(a_task()).session_id for _ in range(3)] == ["s1", "s2", "s3"]
    assert [session.session_id for session in store.sessions()] == ["s3", "s2", "s1"]
    assert store.session("s1").state is SessionState.RUNNING


def test_the_same_request_token_gives_the_same_session(store: AgentStore) -> None:
    first = store.create_session(a_task(), request_token="once")
    assert store.create_session(a_task(), request_token="once").session_id == first.session_id


def test_the_task_is_kept_as_it_was(store: AgentStore) -> None:
    task = a_task()
    assert type(task).model_validate_json(store.create_session(task).task_json) == task


def test_an_unknown_session_names_those_that_exist(store: AgentStore) -> None:
    store.create_session(a_task())
    with pytest.raises(SessionNotFound, match="s1"):
        store.session("s9")


def test_every_claim_has_a_higher_fence(store: AgentStore) -> None:
    store.create_session(a_task())
    assert [store.claim("s1", os.getpid()) for _ in range(3)] == [1, 2, 3]


def test_a_session_held_by_a_living_process_is_not_claimed(store: AgentStore, other_pid: int) -> None:
    store.create_session(a_task())
    store.claim("s1", other_pid)
    with pytest.raises(SessionHeld, match=str(other_pid)):
        store.claim("s1", os.getpid())


def test_a_session_of_a_dead_process_is_claimed(store: AgentStore, dead_pid: int) -> None:
    store.create_session(a_task())
    store.claim("s1", dead_pid)
    assert store.claim("s1", os.getpid()) == 2


def test_a_pid_that_was_used_again_does_not_hold_the_session(store: AgentStore, other_pid: int) -> None:
    store.create_session(a_task())
    store.claim("s1", other_pid)
    with store.engine.begin() as connection:
        connection.execute(sa.text("UPDATE sessions SET pid_started_at = pid_started_at - 100"))
    assert not store.is_held("s1")
    assert store.claim("s1", os.getpid()) == 2


def test_an_older_fence_writes_nothing(store: AgentStore, writer: FencedWriter) -> None:
    book = TrialBook(writer)
    store.claim("s1", os.getpid())
    with pytest.raises(FenceLost):
        book.propose([a_proposal()])
    with pytest.raises(FenceLost):
        SessionRecord(writer).conclude(SessionState.FINISHED, "done")
    assert store.trials("s1") == []
    assert store.session("s1").state is SessionState.RUNNING


def test_stop_and_resume_move_between_states(store: AgentStore, writer: FencedWriter) -> None:
    assert store.request_stop("s1").state is SessionState.STOPPING
    assert store.request_stop("s1").state is SessionState.STOPPING
    SessionRecord(writer).conclude(SessionState.STOPPED, "stopped")
    with pytest.raises(SessionNotRunnable, match="resume"):
        store.claim("s1", os.getpid())
    assert store.request_stop("s1").state is SessionState.STOPPED
    assert store.request_resume("s1").state is SessionState.RUNNING
    assert store.runnable() == ["s1"]


def test_a_finished_session_is_not_resumed(store: AgentStore, writer: FencedWriter) -> None:
    SessionRecord(writer).conclude(SessionState.FINISHED, "done")
    with pytest.raises(SessionNotRunnable, match="finished"):
        store.request_resume("s1")
    assert store.runnable() == []


def test_a_failed_session_that_is_resumed_gets_its_trials_back(store: AgentStore, writer: FencedWriter) -> None:
    book = TrialBook(writer)
    trial = book.propose([a_proposal()])[0]
    failed = replace(trial, state=TrialState.INVALID, note="boom", exit_reason="code_error", device_seconds=5.0)
    book.record([failed])
    SessionRecord(writer).conclude(SessionState.FAILED, "boom")
    store.request_resume("s1")
    again = store.trials("s1")[0]
    assert (again.state, again.submission, again.note) == (TrialState.PROPOSED, 2, None)
    assert store.session("s1").device_seconds == 5.0


def test_a_trial_that_is_given_back_keeps_where_it_comes_from(store: AgentStore, writer: FencedWriter) -> None:
    book = TrialBook(writer)
    origin = TrialFacts(expected=Expected(probability=0.7, effect=0.02), prompt="suggest@1f", model="small", brief="b1")
    trial = book.propose([replace(a_proposal(), facts=origin)])[0]
    failed = replace(trial, state=TrialState.INVALID, facts=replace(origin, device_model="H100", partial_value=0.1))
    book.record([failed])
    SessionRecord(writer).conclude(SessionState.FAILED, "boom")
    store.request_resume("s1")
    assert store.trials("s1")[0].facts == origin


def test_numbers_of_withdrawn_proposals_are_not_used_again(store: AgentStore, writer: FencedWriter) -> None:
    book = TrialBook(writer)
    first, second = book.propose([a_proposal(), a_proposal(seed=1)])
    book.withdraw([second])
    third = book.propose([a_proposal(seed=2)])[0]
    assert [first.number, second.number, third.number] == [1, 2, 3]
    assert [trial.number for trial in store.trials("s1")] == [1, 3]
    assert store.session("s1").n_trials == 2


def test_a_trial_with_an_intent_is_never_withdrawn(store: AgentStore, writer: FencedWriter) -> None:
    book = TrialBook(writer)
    trial = book.intend(book.propose([a_proposal()]), None)[0]
    book.withdraw([trial])
    assert store.trials("s1")[0].is_submitting


def test_the_ledger_has_the_look_before_any_job_and_only_once(store: AgentStore, writer: FencedWriter) -> None:
    book = TrialBook(writer)
    ready = book.propose([a_proposal(Purpose.HELD_OUT)])
    book.intend(ready, "test_score")
    book.intend([book.trial(ready[0].trial_id)], "test_score")
    looks = store.looks("s1")
    assert [(look.look, look.metric, look.trial_id, look.value) for look in looks] == [(1, "test_score", "s1-t1", None)]


def test_the_book_in_memory_equals_the_store(store: AgentStore, writer: FencedWriter) -> None:
    book = TrialBook(writer)
    trials = book.propose([a_proposal(seed=seed) for seed in range(3)])
    book.record([replace(trials[0], state=TrialState.MEASURED, value=0.5, device_seconds=3.0)])
    assert list(book.history().trials) == store.trials("s1")
    assert store.session("s1").device_seconds == 3.0


def test_activity_is_read_newest_last_and_limited(store: AgentStore, writer: FencedWriter) -> None:
    SessionRecord(writer).say([Line(step="launch", text=str(i)) for i in range(10)])
    assert [line.text for line in store.activity("s1", limit=3)] == ["7", "8", "9"]


def test_a_result_survives_the_store(store: AgentStore, writer: FencedWriter) -> None:
    interval = Interval(estimate=0.1, low=0.0, high=0.2, confidence=0.95, n=5)
    result = FinalResult(
        best={"x": 0.5},
        default={"x": 0.2},
        best_configuration="b",
        default_configuration="d",
        best_mean=interval,
        default_mean=None,
        difference=interval,
        comparison="better",
        verdict="supported",
        held_out_value=None,
        held_out_looks=0,
        sentence="it is better",
    )
    SessionRecord(writer).save_result(result)
    assert store.session("s1").result == result


def test_migrations_make_the_tables_that_the_code_declares(store: AgentStore) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext
    from alembic.script import ScriptDirectory

    import agent.store.migrations as migrations

    folder = str(Path(str(migrations.__file__)).parent)
    assert ScriptDirectory(folder).get_current_head() == HEAD
    with store.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": "agent_schema_version"})
        assert compare_metadata(context, metadata) == []


def test_two_processes_open_a_new_store_at_once(tmp_path: Path) -> None:
    code = "import sys, pathlib; from agent.store.store import AgentStore; AgentStore.open(pathlib.Path(sys.argv[1]))"
    folder = str(tmp_path / "new")
    both = [subprocess.Popen([sys.executable, "-c", code, folder]) for _ in range(2)]
    assert [process.wait(timeout=60) for process in both] == [0, 0]


def test_writers_wait_for_each_other_instead_of_failing(store: AgentStore) -> None:
    second = open_engine(store.engine.url.render_as_string(hide_password=False))
    other = AgentStore(second)
    for _ in range(20):
        store.create_session(a_task())
        other.create_session(a_task())
    second.dispose()
    assert len(store.sessions()) == 40


def test_the_database_is_the_owners_alone(tmp_path: Path) -> None:
    with contextlib.closing(AgentStore.open(tmp_path)):
        found = {
            path.name: path.stat().st_mode & 0o077 for path in tmp_path.glob("agent.db*") if path.suffix != ".lock"
        }
    assert found
    assert not any(found.values()), found


def test_several_processes_may_open_a_new_store_at_once(tmp_path: Path) -> None:
    """Also while another one writes to the file that is not yet in WAL, which SQLite's busy timeout does not cover."""
    first = sqlite3.connect(tmp_path / "agent.db", isolation_level=None)
    first.execute("BEGIN IMMEDIATE")
    failures: list[Exception] = []

    def one() -> None:
        try:
            AgentStore.open(tmp_path).close()
        except sa.exc.DBAPIError as error:
            failures.append(error)

    threads = [threading.Thread(target=one) for _ in range(4)]
    for thread in threads:
        thread.start()
    threads[0].join(0.2)
    first.rollback()
    first.close()
    for thread in threads:
        thread.join(30)
    assert failures == []


def test_a_second_store_of_one_process_does_not_take_the_first_one_s_log_from_it(tmp_path: Path) -> None:
    first, second = AgentStore.open(tmp_path), AgentStore.open(tmp_path)
    look = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('SELECT * FROM sessions').fetchall()"
    subprocess.run([sys.executable, "-c", look, str(tmp_path / "agent.db")], check=True)
    assert (tmp_path / "agent.db-wal").exists(), "the other process thought that it was the last one"
    first.create_session(a_task())
    third = AgentStore.open(tmp_path)
    assert [s.session_id for s in third.sessions()] == ["s1"]
    for one in (first, second, third):
        one.close()
