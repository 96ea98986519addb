"""What `sweep run` says to cron of a start that did nothing, and who may resume a session of a night."""

from __future__ import annotations

from pathlib import Path

import pytest
from ended_session import TASK

from agent.store.nights import NightStore
from agent.store.store import AgentStore
from agent.sweeps.cells import Cell
from agent.sweeps.sweep import RandomMethod, Sweep
from agent.sweeps.views import NightOutcome
from agent.task import Task
from nightlab.commands.sweep_run import code_in_use, exit_code


def a_cell() -> Cell:
    return Cell(name="a", task=Task.model_validate(TASK))


def a_sweep(name: str) -> Sweep:
    return Sweep(sweep=name, task="t.yaml", method=RandomMethod(kind="random", trials=3))


@pytest.fixture
def nights(tmp_path: Path) -> NightStore:
    return NightStore(AgentStore.open(tmp_path))


def test_a_skip_for_the_night_before_is_no_missed_hour_whatever_the_sweep_is_called(nights: NightStore) -> None:
    for _ in range(2):
        found = nights.begin(a_sweep("window-lr"), file="f", cells=[a_cell()], finish_by=None).night
    assert found is not None
    assert found.outcome is NightOutcome.SKIPPED
    assert exit_code(found, is_hour_missed=False) == 0
    assert exit_code(found, is_hour_missed=True) == 10


def test_a_person_resumes_a_session_of_a_night_only_when_that_is_over(nights: NightStore) -> None:
    night = nights.begin(a_sweep("digits"), file="f", cells=[a_cell()], finish_by=5e9).night
    assert night is not None
    fence = nights.claim(night.night_id)
    session_id = nights.start_cell(night.night_id, 0, fence)
    assert "still runs" in (nights.why_not_resumed(nights.store.session(session_id)) or "")
    nights.conclude(night.night_id, fence, outcome=NightOutcome.STOPPED, message="", summary=None)
    assert nights.why_not_resumed(nights.store.session(session_id)) is None


def test_code_of_cells_that_wait_and_of_sessions_that_can_go_on_is_in_use(nights: NightStore) -> None:
    def at(folder: str) -> Cell:
        source = {"root_path": folder, "snapshot": "auto"}
        task = Task.model_validate({**TASK, "job": {"command": "train", "code_source": source}})
        return Cell(name=folder, task=task)

    nights.begin(a_sweep("one"), file="one.yaml", cells=[at("/states/a"), at("/states/b")], finish_by=None)
    stopped = nights.store.create_session(at("/states/c").task)
    nights.store.request_stop(stopped.session_id)
    assert sorted(code_in_use(nights)) == [Path("/states/a"), Path("/states/b"), Path("/states/c")]
