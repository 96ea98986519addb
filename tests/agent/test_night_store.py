"""Nights in the store: one at a time, each cell one session, and who may end them."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from agent_stores import postgres_url, store
from agent_worlds import a_task
from alembic import command
from alembic.config import Config

import agent.store.migrations as migrations
from agent.store.nights import NightFenceLost, NightHeld, NightStore, Start
from agent.store.schema import open_engine, writing
from agent.store.store import AgentStore
from agent.store.views import SessionState
from agent.sweeps.cells import Cell
from agent.sweeps.sweep import RandomMethod, Sweep
from agent.sweeps.views import NightOutcome, NightState, NightSummary, NightView

CELLS = [Cell(name="a", task=a_task()), Cell(name="b", task=a_task())]


def a_sweep(overlap: str = "skip") -> Sweep:
    return Sweep(sweep="digits", task="t.yaml", method=RandomMethod(kind="random", trials=3), overlap=overlap)


def begin(nights: NightStore, overlap: str = "skip", finish_by: float | None = None) -> NightView:
    found = nights.begin(a_sweep(overlap), file="/d/sweep.yaml", cells=CELLS, finish_by=finish_by)
    assert found.night is not None
    return found.night


__all__ = ["postgres_url", "store"]  # fixtures


@pytest.fixture
def nights(store: AgentStore) -> NightStore:
    return NightStore(store)


def end(nights: NightStore, night_id: str, outcome: NightOutcome = NightOutcome.DONE) -> None:
    fence = nights.claim(night_id)
    nights.conclude(night_id, fence, outcome=outcome, message="", summary=NightSummary())


def test_a_start_while_the_night_before_runs_leaves_a_row_and_no_cells(nights: NightStore) -> None:
    first = begin(nights)
    again = nights.begin(a_sweep(), file="/d/sweep.yaml", cells=CELLS, finish_by=None)
    assert again.start is Start.SKIPPED
    assert again.night is not None
    assert (again.night.outcome, again.night.message) == (NightOutcome.SKIPPED, f"{first.night_id} still runs")
    assert again.night.cells == ()
    assert nights.runnable() == [first.night_id]


@pytest.mark.parametrize("overlap", ["queue", "replace"])
def test_who_waits_writes_nothing_until_the_night_before_has_ended(nights: NightStore, overlap: str) -> None:
    first = begin(nights)
    found = nights.begin(a_sweep(overlap), file="f", cells=CELLS, finish_by=None)
    assert (found.start, found.night) == (Start.WAIT, None)
    assert len(nights.nights("digits")) == 1
    end(nights, first.night_id)
    assert begin(nights, overlap).number == 2


def test_of_many_starts_at_once_one_begins(nights: NightStore) -> None:
    found: list[Start] = []

    def one() -> None:
        found.append(nights.begin(a_sweep(), file="f", cells=CELLS, finish_by=None).start)

    threads = [threading.Thread(target=one) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(found) == sorted([Start.BEGUN, *[Start.SKIPPED] * 5])


def test_a_cell_has_one_session_however_often_it_is_started(nights: NightStore) -> None:
    night = begin(nights, finish_by=5e9)
    fence = nights.claim(night.night_id)
    first = nights.start_cell(night.night_id, 0, fence)
    assert nights.start_cell(night.night_id, 0, fence) == first
    session = nights.store.session(first)
    assert (session.night_id, session.finish_by) == (night.night_id, 5e9)
    assert len(nights.store.sessions()) == 1


def test_a_process_with_an_older_fence_neither_starts_nor_ends_anything(nights: NightStore) -> None:
    night = begin(nights)
    old = nights.claim(night.night_id)
    nights.claim(night.night_id)
    with pytest.raises(NightFenceLost):
        nights.start_cell(night.night_id, 0, old)
    with pytest.raises(NightFenceLost):
        nights.conclude(night.night_id, old, outcome=NightOutcome.DONE, message="", summary=None)
    assert nights.night(night.night_id).state is NightState.RUNNING


def test_a_night_that_a_living_process_has_is_not_taken(nights: NightStore) -> None:
    night = begin(nights)
    nights.claim(night.night_id)
    with pytest.raises(NightHeld):
        nights.claim(night.night_id, pid=1)


def test_a_stop_names_its_outcome_and_does_nothing_to_an_ended_night(nights: NightStore) -> None:
    night = begin(nights)
    assert nights.request_stop(night.night_id, NightOutcome.REPLACED).state is NightState.STOPPING
    assert nights.stop_outcome(night.night_id) is NightOutcome.REPLACED
    end(nights, night.night_id, NightOutcome.REPLACED)
    assert nights.request_stop(night.night_id).state is NightState.ENDED


def test_what_a_deadline_left_goes_on_first_in_the_next_night_and_once(nights: NightStore) -> None:
    first = begin(nights)
    fence = nights.claim(first.night_id)
    left = nights.start_cell(first.night_id, 0, fence)
    done = nights.start_cell(first.night_id, 1, fence)
    nights.store._move(left, {SessionState.RUNNING}, SessionState.STOPPED, "the hour has come")
    nights.store._move(done, {SessionState.RUNNING}, SessionState.FINISHED, "")
    end(nights, first.night_id, NightOutcome.DEADLINE)
    second = begin(nights, finish_by=6e9)
    assert nights.resume_sessions(second.night_id) == [left]
    nights.store._move(left, {SessionState.RUNNING}, SessionState.STOPPED, "tonight's hour has come too")
    assert nights.resume_sessions(second.night_id) == []
    cells = nights.night(second.night_id).cells
    assert [(c.cell, c.session_id, c.is_resumed) for c in cells] == [
        ("a", left, True),
        ("a", None, False),
        ("b", None, False),
    ]
    session = nights.store.session(left)
    assert (session.state, session.finish_by, session.night_id) == (SessionState.STOPPED, 6e9, second.night_id)


def test_what_a_person_ended_is_not_taken_up_again(nights: NightStore) -> None:
    first = begin(nights)
    left = nights.start_cell(first.night_id, 0, nights.claim(first.night_id))
    nights.store._move(left, {SessionState.RUNNING}, SessionState.STOPPED, "stopped")
    end(nights, first.night_id, NightOutcome.STOPPED)
    assert nights.resume_sessions(begin(nights).night_id) == []


def test_one_night_of_a_sweep_is_the_reference(nights: NightStore) -> None:
    ids = []
    for _ in range(2):
        ids.append(begin(nights).night_id)
        end(nights, ids[-1])
    for night_id in ids:
        nights.accept(night_id)
    assert [night.is_reference for night in nights.nights("digits")] == [False, True]


def test_a_home_of_the_release_before_owes_no_pages_of_nights_that_had_ended(tmp_path: Path) -> None:
    engine = open_engine(f"sqlite:///{tmp_path / 'agent.db'}")
    with writing(engine) as connection:
        config = Config()
        config.set_main_option("script_location", str(Path(str(migrations.__file__)).parent))
        config.attributes["connection"] = connection
        command.upgrade(config, "0003")
        for number, state, ended_at in ((1, "ended", 5.0), (2, "stopping", None)):
            connection.exec_driver_sql(
                "INSERT INTO nights (night_id, sweep, number, file, sweep_json, state, stop_outcome, message, "
                "created_at, ended_at, fence, is_reference) "
                "VALUES (?, 'd', ?, 'f', '{}', ?, 'stopped', '', 3.0, ?, 0, 0)",
                (f"d-n{number}", number, state, ended_at),
            )
    engine.dispose()
    nights = NightStore(AgentStore.open(tmp_path))
    assert nights.runnable() == ["d-n2"]
    assert [(one.settled_at, one.stop_asked_at) for one in nights.nights("d")] == [(5.0, 3.0), (None, 3.0)]
