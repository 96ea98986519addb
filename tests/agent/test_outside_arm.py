"""An outside agent is one more proposer: its slots, its gates, its budget, and the control arm beside it."""

from __future__ import annotations

from pathlib import Path

from agent_worlds import World, a_task, a_world

from agent.planner.portfolio import CONTROL
from agent.planner.proposers.outside import OUTSIDE
from agent.store.views import Expected, Purpose, SessionState, TrialView
from agent.waiting import DirectWaiter, Interest, Wake

SPACE = {"x": {"type": "float", "low": 0.0, "high": 1.0, "default": 0.1}}


def a_searched(tmp_path: Path, ideas: list[float], *, budgets: dict[str, int]) -> World:
    search = {"use": ["sampler", "outside"], "control_share": 0.25}
    world = a_world(tmp_path, task=a_task(space=SPACE, search=search, budgets=budgets))
    for x in ideas:
        world.store.suggest(
            "s1", {"x": x}, why="the curve bends", suggested_by="coder", arm=OUTSIDE, expected=Expected(probability=0.7)
        )
    return world


def searched(world: World) -> list[TrialView]:
    return [t for t in world.store.trials("s1") if t.purpose is Purpose.SEARCH]


def test_its_proposals_become_trials_of_its_arm_with_whose_they_are_and_what_was_predicted(tmp_path: Path) -> None:
    world = a_searched(tmp_path, [0.31, 0.52], budgets={"trials": 8})
    assert world.live() is SessionState.FINISHED
    of_it = [t for t in searched(world) if t.suggested_by == OUTSIDE]
    assert [t.params["x"] for t in of_it] == [0.31, 0.52]
    assert {(t.facts.model, t.facts.expected) for t in of_it} == {("coder", Expected(probability=0.7))}
    assert [one.trial_id for one in world.store.suggestions("s1")] == [t.trial_id for t in of_it]


def test_many_proposals_do_not_take_the_slots_of_the_control_arm(tmp_path: Path) -> None:
    rubbish = [0.9 + n / 1000 for n in range(0, 90, 3)]
    world = a_searched(tmp_path, rubbish, budgets={"trials": 12})
    assert world.live() is SessionState.FINISHED
    names = [t.suggested_by for t in searched(world)]
    assert names.count(CONTROL) + names.count("default") >= 3
    assert 1 <= names.count(OUTSIDE) <= 9
    assert all(one.trial_id or one.note for one in world.store.suggestions("s1")), "each is answered in the end"


def test_what_lies_outside_of_the_space_or_repeats_is_refused_with_a_reason(tmp_path: Path) -> None:
    world = a_searched(tmp_path, [7.0, 0.4, 0.4], budgets={"trials": 6})
    assert world.live() is SessionState.FINISHED
    beyond, tried, again = world.store.suggestions("s1")
    assert beyond.trial_id is None
    assert "Allowed: x: a number from 0 to 1" in (beyond.note or "")
    assert tried.trial_id is not None
    assert again.trial_id is None
    assert again.note


def test_without_the_arm_in_the_task_its_proposals_are_refused(tmp_path: Path) -> None:
    world = a_world(tmp_path, task=a_task(space=SPACE, budgets={"trials": 3}))
    world.store.suggest("s1", {"x": 0.4}, why="sure", suggested_by="coder", arm=OUTSIDE)
    assert world.live() is SessionState.FINISHED
    (told,) = world.store.suggestions("s1")
    assert told.trial_id is None
    assert "search.use" in (told.note or "")


def test_a_session_that_takes_proposals_alone_waits_for_them(tmp_path: Path) -> None:
    search = {"use": ["outside"]}
    world = a_world(tmp_path, task=a_task(space=SPACE, search=search, budgets={"trials": 3}))
    n_waits = 0

    def pause(seconds: float) -> None:
        world.runtime.advance(seconds)

    class Later(DirectWaiter):
        """Half a minute goes by before anything is proposed, and again before the second one."""

        def wait(self, interest: Interest) -> Wake:
            nonlocal n_waits
            n_waits += 1
            if n_waits in (40, 80):
                world.store.suggest("s1", {"x": n_waits / 100}, why="", suggested_by="coder", arm=OUTSIDE)
            return super().wait(interest)

    state = world.live(open_waiter=lambda runtime, since: Later(runtime, since=since), pause=pause)
    assert state is SessionState.FINISHED
    assert [t.params["x"] for t in searched(world)] == [0.1, 0.4, 0.8]
