"""Replicates that a person asks a session for: trials of its own, on seeds of their own, that count in its verdicts."""

from __future__ import annotations

from pathlib import Path

import pytest
from agent_worlds import World
from chat_worlds import a_desk, a_finished_world, a_stopped_world, ahead, done, look

from agent.planner.seeds import is_racing
from agent.store.store import TrialNotFound
from agent.store.views import Purpose, SuggestedEdit, TrialView
from agent.task import Task

pytestmark = pytest.mark.web


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A session that searches, with some trials measured."""
    made = a_stopped_world(tmp_path)
    made.store.request_resume("s1")
    return made


def asked_by(world: World, by: str) -> list[TrialView]:
    return [trial for trial in world.store.trials("s1") if trial.suggested_by == by]


def test_a_session_that_searches_makes_them_itself(world: World) -> None:
    desk = a_desk(world)
    n_jobs = len(world.runtime.jobs())
    found = ahead(desk, "/launch t1 2")
    assert "launch 2 replicates of s1-t1 on fresh seeds, as trials of session s1" in found.what
    assert found.device_seconds is not None
    assert done(desk, "/launch t1 2").text == "session s1 is asked for 2 replicates of s1-t1; they go first"
    done(desk, "/launch t2 2")
    assert len(world.runtime.jobs()) == n_jobs
    world.live()
    made, task = asked_by(world, "ann"), Task.model_validate_json(world.store.session("s1").task_json)
    assert [t.purpose for t in made] == [Purpose.REPLICATE] * 4
    assert [t.configuration for t in made[:2]] == [world.store.trial("s1-t1").configuration] * 2
    assert all(is_racing(task, t.seed) and t.value is not None for t in made)
    assert len({t.seed for t in made}) == 2
    assert [t.seed for t in made[:2]] == [t.seed for t in made[2:]]
    assert "over 2 paired seeds" in look(desk, "/compare t2 t1").text
    assert [one.trial_id for one in world.store.suggestions("s1")] == [t.trial_id for t in made]


def test_they_cost_none_of_the_trials_of_the_search(world: World) -> None:
    done(a_desk(world), "/launch t1 3")
    world.live()
    assert world.store.session("s1").n_trials == 6
    assert len(asked_by(world, "ann")) == 3


def test_what_is_no_trial_is_answered_with_a_reason(world: World) -> None:
    again = SuggestedEdit(text="", parent="s1-t99")
    world.store.suggest("s1", {}, why="?", suggested_by="ann", arm="again", edit=again)
    world.live()
    assert [one.note for one in world.store.suggestions("s1")] == [
        "s1-t99 is no trial of this session that can run again"
    ]
    with pytest.raises(TrialNotFound):
        world.store.suggest_again("s1-t99", 1, by="ann")


def test_a_session_that_searches_no_more_is_not_asked(tmp_path: Path) -> None:
    finished = a_finished_world(tmp_path)
    assert "as jobs of yours" in ahead(a_desk(finished), "/launch t1").what
    assert done(a_desk(finished), "/launch t1").table is not None
    assert finished.store.suggestions("s1") == []
